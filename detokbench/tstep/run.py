"""A whole ``time-step`` run, from the plan to the record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from detokbench.errors import DetokbenchError
from detokbench.records.schema import Record
from detokbench.tstep.cuda_step import measured_rows
from detokbench.tstep.device import measure_copy_bandwidth
from detokbench.tstep.plan import Plan
from detokbench.tstep.record import build_record
from detokbench.tstep.rows import TimingRow

Progress = Callable[[str, float], None]
"""Takes what is being done and the share of the run that is done, 0 to 1."""


@dataclass(frozen=True)
class Effort:
    """How long each point is timed: ``samples`` of ``sample_s`` seconds after a warm-up."""

    samples: int
    sample_s: float
    warm_up_s: float


DEFAULT_EFFORT = Effort(samples=9, sample_s=0.2, warm_up_s=1.0)
QUICK_EFFORT = Effort(samples=3, sample_s=0.05, warm_up_s=0.2)


@dataclass
class Outcome:
    """A record, and what ended the run early, if anything did."""

    record: Record
    error: BaseException | None


def run_time_step(
    plan: Plan,
    effort: Effort,
    compile_layers: bool,
    created: str,
    command: list[str],
    progress: Progress,
) -> Outcome:
    """Time the points where the plan has a device; add the roofline where it has a GPU.

    A step that fails, or Ctrl-C, ends the run early: the record then holds the points that were
    finished and is marked partial. Raises what ended it where none was.
    """
    if plan.target.device is None:
        return Outcome(
            build_record(plan, list(plan.paper_rows()), created=created, command=command), None
        )
    paper = list(plan.paper_rows())
    timed: list[TimingRow] = []
    error: BaseException | None = None
    progress(f"preparing {plan.asked.shape.name} on {plan.target.device}", 0.0)
    copy_bandwidth = _copy_bandwidth(plan)
    points = len(plan.asked.batches) * len(plan.asked.contexts)
    try:
        for row in _timed_rows(plan, effort, compile_layers, copy_bandwidth):
            timed.append(row)
            progress("timing", len(timed) / points)
    except (DetokbenchError, KeyboardInterrupt) as stop:
        if not timed:
            raise
        error = stop
    record = build_record(
        plan,
        [*timed, *paper],
        created=created,
        command=command,
        partial=error is not None,
        copy_bandwidth_bytes_s=copy_bandwidth,
        settings={**asdict(effort), "compile": compile_layers, "points_finished": len(timed)},
    )
    record.warnings.extend(_graph_warnings(timed))
    return Outcome(record, error)


def _copy_bandwidth(plan: Plan) -> float | None:
    """Of a CUDA device; a small model on the CPU lies in its caches, so there it says nothing."""
    device = plan.target.device
    return measure_copy_bandwidth(device) if device.type == "cuda" else None


def _timed_rows(
    plan: Plan, effort: Effort, compile_layers: bool, copy_bandwidth: float | None
) -> Iterator[TimingRow]:
    return measured_rows(
        plan.asked.shape,
        plan.asked.batches,
        plan.asked.contexts,
        device=str(plan.target.device),
        compile_layers=compile_layers,
        gpu=plan.target.sheet,
        copy_bandwidth_bytes_s=copy_bandwidth,
        **asdict(effort),
    )


def _graph_warnings(timed: list[TimingRow]) -> list[str]:
    broken = [row for row in timed if row.graph_error is not None and math.isnan(row.graph_error)]
    return [
        f"B = {row.batch}, L = {row.context}: the captured step gives logits that are no numbers"
        for row in broken
    ]
