"""From timings to a record of the kind ``time-step``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from detokbench import __version__
from detokbench.bench.machine import disturbances, machine_facts, package_versions
from detokbench.bench.statistics import summarize
from detokbench.records.schema import Record, Row
from detokbench.records.time_step import Point, TimeStepDetails
from detokbench.tstep.answers import context_answers, published_beside, smallest_tp
from detokbench.tstep.plan import Plan
from detokbench.tstep.roofline import KV_BYTES, WEIGHT_BYTES
from detokbench.tstep.rows import TimingRow

KIND = "time-step"
PATH = "t-step"
_TIMED = ("measured", "cpu")


def build_record(
    plan: Plan,
    timings: Sequence[TimingRow],
    *,
    created: str,
    command: list[str],
    partial: bool = False,
    copy_bandwidth_bytes_s: float | None = None,
    settings: dict[str, Any] | None = None,
) -> Record:
    """Rows, the points beside them, and what the data sheet answers."""
    machine = machine_facts()
    details = TimeStepDetails(
        model=_model_facts(plan),
        gpu=msgspec.to_builtins(plan.target.gpu),
        options=_options(plan),
        device=None if plan.target.facts is None else asdict(plan.target.facts),
        copy_bandwidth_bytes_s=copy_bandwidth_bytes_s,
        memory_bytes=plan.memory_bytes,
        smallest_tp=smallest_tp(plan),
        answers=context_answers(plan),
        published=published_beside(plan),
        points=[_point(plan, timing) for timing in timings],
    )
    is_cpu = any(timing.source == "cpu" for timing in timings)
    return Record(
        kind=KIND,
        created=created,
        command=command,
        detokbench=__version__,
        partial=partial,
        scenario={},
        vocabulary={},
        settings=settings or {},
        machine=machine,
        packages=package_versions(),
        # Only a step on the CPU is disturbed by what else the CPU does.
        warnings=[*plan.target.notes, *(disturbances(machine) if is_cpu else [])],
        rows=[_row(timing) for timing in timings],
        details=msgspec.to_builtins(details),
    )


def _row(timing: TimingRow) -> Row:
    row = Row(
        path=PATH,
        batch=timing.batch,
        metric="t_step",
        median=timing.t_step_s,
        ci_low=None,
        ci_high=None,
        mad=None,
        samples=list(timing.samples),
        vocab="",
        context=timing.context,
        source=timing.source,
    )
    if timing.samples:
        # All of one process: the interval tells how steady the device was in this run.
        summary = summarize(timing.samples)
        row.ci_low, row.ci_high, row.mad = summary.ci_low, summary.ci_high, summary.mad
    return row


def _point(plan: Plan, timing: TimingRow) -> Point:
    is_timed = timing.source in _TIMED
    needed = plan.memory_needed_bytes(timing.batch, timing.context)
    return Point(
        bytes_read=timing.bytes,
        memory_needed_bytes=needed,
        fits=timing.t_step_s is not None if is_timed else needed <= plan.memory_bytes,
        bound=None if is_timed else _bound(plan, timing),
        spread=timing.spread,
        share_of_copy=timing.share_of_copy,
        share_of_sheet=timing.share_of_sheet,
        graph_error=timing.graph_error,
        sm_clock_mhz=timing.sm_clock_mhz,
        note=timing.note,
    )


def _bound(plan: Plan, timing: TimingRow) -> Any:
    if timing.source == "memory-only":
        return "memory"
    return plan.step_time(timing.batch, timing.context).bound


def _model_facts(plan: Plan) -> dict[str, Any]:
    asked, shape = plan.asked, plan.asked.shape
    return {
        **asdict(shape),
        "total_params": shape.total_params,
        "streamed_params": shape.streamed_params,
        "embedding_params": shape.embedding_params,
        "weight_bytes_read": shape.streamed_params * WEIGHT_BYTES[asked.weights],
        "kv_bytes_per_token": shape.kv_bytes_per_token(KV_BYTES[asked.kv]),
    }


def _options(plan: Plan) -> dict[str, Any]:
    asked = plan.asked
    return {
        "batches": list(asked.batches),
        "contexts": list(asked.contexts),
        "weights": asked.weights,
        "kv": asked.kv,
        "tp": asked.tp,
        "derate": asked.derate,
    }
