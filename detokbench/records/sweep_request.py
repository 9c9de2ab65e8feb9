"""What a sweep is asked, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

import msgspec

from detokbench.errors import usage_error
from detokbench.records.front_end_costs import FEWEST_STREAMS, FrontEndCost, front_end_costs
from detokbench.records.schema import ProcessRun, Record
from detokbench.records.store import read_record
from detokbench.records.sweep import SweepOptions, sweep_options_of
from detokbench.tstep.curves import Deployment, check_fits
from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.roofline import KvFormat, WeightFormat, step_time_s
from detokbench.tstep.shapes import find_shape
from detokbench.workload.scenario import Scenario

_FEWEST_BATCHES = 2
_USUAL_BATCH = 256


def sweep_options(
    *,
    gpu: str,
    model: str,
    weights: str,
    kv: str,
    tp: int,
    derate: float,
    contexts: list[int],
    intervals: list[int],
    ids_per_step: int,
    engines_per_frontend: int,
    logprobs: list[int],
    given_s: float | None,
    measured_from: str | None,
    overlap: bool,
    at_batch: int | None,
    batches: list[int],
    host_costs_from: Sequence[str] = (),
) -> SweepOptions:
    """The options of a sweep. Raises DetokbenchError, exit code 2, for what cannot be."""
    if len(batches) < _FEWEST_BATCHES:
        raise usage_error("--batch: a sweep needs two batches or more, such as 1..512")
    if given_s is not None and measured_from is not None:
        raise usage_error("--t-step and --t-step-from exclude each other: one source at a time")
    if at_batch is not None and at_batch not in batches:
        raise usage_error(f"--at: {at_batch} is not among the batches of --batch")
    _check_format("--weights", weights, get_args(WeightFormat))
    _check_format("--kv", kv, get_args(KvFormat))
    deployment = Deployment(
        gpu=find_gpu(gpu),
        model=find_shape(model),
        weights=cast(WeightFormat, weights),
        kv=cast(KvFormat, kv),
        tp=tp,
        derate=derate,
    )
    if given_s is None and measured_from is None:
        _check_fits(deployment, contexts)
    return SweepOptions(
        deployment=deployment,
        contexts=contexts,
        intervals=sorted({1, *intervals}),  # what keeps up is said against k = 1
        ids_per_step=ids_per_step,
        engines_per_frontend=engines_per_frontend,
        logprobs=[number for number in logprobs if number],
        given_s=given_s,
        measured_s={} if measured_from is None else _measured_points(Path(measured_from)),
        overlap=overlap,
        at_batch=at_batch or min(batches, key=lambda batch: abs(batch - _USUAL_BATCH)),
        front_ends=_front_ends(host_costs_from),
    )


def _check_format(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise usage_error(f"{option}: '{value}' is none of {', '.join(known)}")


def _check_fits(deployment: Deployment, contexts: Sequence[int]) -> None:
    for context in contexts:
        # Raises for a derate or a tensor parallelism that cannot be.
        step_time_s(
            deployment.model, deployment.gpu, 1, context, tp=deployment.tp, derate=deployment.derate
        )
        check_fits(deployment, context)


def _measured_points(path: Path) -> dict[int, dict[int, float]]:
    """T_step of a time-step record: context → batch → seconds, of the points that were timed."""
    record = read_record(path)
    if record.kind != "time-step":
        raise usage_error(f"--t-step-from: {path.name} is a record of {record.kind}, not time-step")
    points: dict[int, dict[int, float]] = {}
    for row in record.rows:
        if row.source == "measured" and row.median is not None and row.context is not None:
            points.setdefault(row.context, {})[row.batch] = row.median
    usable = {c: at_batch for c, at_batch in points.items() if len(at_batch) >= _FEWEST_BATCHES}
    if not usable:
        raise usage_error(
            f"--t-step-from: {path.name} has no context with two measured batches; "
            "a roofline is had with --gpu"
        )
    return usable


def _front_ends(paths: Sequence[str]) -> list[FrontEndCost]:
    """Whole front ends of ``frontend`` records; each of them may come once."""
    found: dict[str, FrontEndCost] = {}
    for path in map(Path, paths):
        for cost in _costs_of(path):
            if cost.engine in found:
                raise usage_error(
                    f"--host-cost-from: {path.name} has '{cost.engine}', which an earlier one had"
                )
            found[cost.engine] = cost
    return list(found.values())


def _costs_of(path: Path) -> list[FrontEndCost]:
    record = read_record(path)
    if record.kind != "frontend":
        raise usage_error(
            f"--host-cost-from: {path.name} is a record of {record.kind}, not frontend"
        )
    try:
        costs = front_end_costs(record)
    except (msgspec.ValidationError, ValueError) as error:
        raise usage_error(f"--host-cost-from: {path.name} is damaged: {error}") from error
    if not costs:
        raise usage_error(
            f"--host-cost-from: {path.name} has no front end measured at {FEWEST_STREAMS} numbers "
            "of streams; 'detokbench frontend --streams 1,32,128' measures three"
        )
    return costs


def resumed(
    path: str, scenario: Scenario, options: SweepOptions, processes: int
) -> list[ProcessRun]:
    """The processes that an interrupted sweep had finished.

    Raises DetokbenchError, exit code 2: not a sweep, of other options, or with nothing missing.
    """
    record = read_record(Path(path))
    name = Path(path).name
    if record.kind != "sweep":
        raise usage_error(f"--resume: {name} is a record of {record.kind}, not sweep")
    if _asked(record) != (scenario.batches, scenario.ids_per_step, scenario.stop, options):
        raise usage_error(f"--resume: {name} was asked something else; give the options it had")
    if len(record.processes) >= processes:
        raise usage_error(f"--resume: nothing is missing in {name}")
    return record.processes


def _asked(record: Record) -> tuple[list[int], int, list[str], SweepOptions]:
    scenario = record.scenario
    asked = sweep_options_of(record)
    return scenario["batches"], scenario["ids_per_step"], scenario["stop"], asked
