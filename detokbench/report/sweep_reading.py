"""What a sweep says, in sentences made from its numbers; the last one is what to do."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from detokbench.model.sweep import PathCost, busiest_samples
from detokbench.model.tail_str import scheduler_s as scheduler_step_s
from detokbench.model.tail_str import step_with_scheduler_s
from detokbench.records.sweep import Sweep
from detokbench.report.measure_c_rows import label
from detokbench.report.sweep_front_ends import measured_front_ends, whole_front_ends
from detokbench.report.units import count, duration, milliseconds, percent
from detokbench.tstep.curves import TStepCurve

ENGINE_PATHS = (("vLLM", "fast"), ("vLLM", "slow"), ("SGLang", "batch-decode"))
"""The path that each engine takes: on a Python tokenizer vLLM takes the slow one."""
CURE = "byte-table"


def engine_costs(sweep: Sweep) -> list[tuple[str, PathCost]]:
    """The engines whose own path was measured, with that path; one path an engine."""
    found: dict[str, PathCost] = {}
    for engine, path in ENGINE_PATHS:
        cost = sweep.cost(path)
        if cost is not None:
            found.setdefault(engine, cost)
    return list(found.items())


def host_step_s(sweep: Sweep, cost: PathCost, batch: int, interval: int = 1) -> float:
    """Seconds a step of the busiest host process at a batch: median over processes."""
    options = sweep.options
    samples = busiest_samples(
        cost,
        sweep.sending(interval),
        interval,
        options.ids_per_step,
        options.engines_per_frontend,
    )
    return median(points[batch] for points in samples)


def at_context(curve: TStepCurve) -> str:
    """``, L = 1k``; nothing where a time was given for every context."""
    return "" if curve.context is None else f", L = {count(curve.context)}"


def read_sweep(sweep: Sweep) -> list[str]:
    """One sentence an engine and front end, and the recommendation."""
    batch = sweep.options.at_batch
    sentences = [
        _headroom(
            sweep,
            f"{engine} ({label(*cost.key)})",
            "its busiest host process works",
            host_step_s(sweep, cost, batch),
        )
        for engine, cost in engine_costs(sweep)
    ]
    for whole in measured_front_ends(sweep):
        needs = "by extrapolation it needs" if whole.is_extrapolated(batch) else "it needs"
        who = f"The whole front end {whole.name}"
        sentences.append(_headroom(sweep, who, needs, whole.host_s(batch)))
    return [*filter(None, [*sentences, _added_by_stops(sweep)]), recommend(sweep)]


def _added_by_stops(sweep: Sweep) -> str:
    """What the scheduler's checks do to the step where no overlap hides them."""
    batch, stops_s = sweep.options.at_batch, sweep.stops_s()
    curve = _tightest(sweep, batch)
    if sweep.options.overlap or stops_s is None or curve is None:
        return ""
    scheduler_s, t_step_s = scheduler_step_s(batch, median(stops_s)), curve(batch)
    step_s = step_with_scheduler_s(t_step_s, scheduler_s, overlap=False)
    return (
        f"Without overlap SGLang's stop checks add {milliseconds(scheduler_s)} ms to each "
        f"{milliseconds(t_step_s)} ms step at B = {batch}{at_context(curve)}: a step lasts "
        f"{milliseconds(step_s)} ms."
    )


def _headroom(sweep: Sweep, who: str, needs: str, host_s: float) -> str:
    batch = sweep.options.at_batch
    curve = _tightest(sweep, batch)
    if curve is None:
        return ""
    t_step_s = curve(batch)
    verb = "keeps up" if host_s <= t_step_s else "is late"
    return (
        f"{who} {verb} at B = {batch}{at_context(curve)}: {needs} "
        f"{milliseconds(host_s)} ms of each {milliseconds(t_step_s)} ms step "
        f"({percent(host_s / t_step_s)} %)."
    )


def _tightest(sweep: Sweep, batch: int) -> TStepCurve | None:
    """The T_step that leaves the host the least time, of those whose batch fits."""
    fitting = [curve for curve in sweep.curves if curve.fits(batch)]
    return min(fitting, key=lambda curve: curve(batch), default=None)


def recommend(sweep: Sweep) -> str:
    """What to do at the batch asked for, with its price."""
    batch = sweep.options.at_batch
    curve = _tightest(sweep, batch)
    if curve is None:
        return f"Nothing to recommend: B = {batch} fits in memory at none of the contexts asked."
    late = [
        (engine, cost)
        for engine, cost in engine_costs(sweep)
        if host_step_s(sweep, cost, batch) > curve(batch)
    ]
    if not late:
        return f"To do at B = {batch}: {_nothing_but(sweep, curve, batch)}"
    return f"To do at B = {batch}: " + " ".join(
        f"{engine}: {'; or '.join(_cures(sweep, cost, curve, batch))}." for engine, cost in late
    )


def _nothing_but(sweep: Sweep, curve: TStepCurve, batch: int) -> str:
    """The measured parts keep up; a whole front end may not."""
    late = [
        f"{whole.name} ({whole.token_us(batch)} µs a token, {whole.origin}) needs "
        f"{whole.needed(curve, batch)} processes"
        for whole in whole_front_ends(sweep)
        if whole.host_s(batch) > curve(batch)
    ]
    if not late:
        return "nothing: the measured parts keep up, and so do whole front ends."
    return (
        "nothing for the parts measured here. But a whole front end does more, and one process of "
        f"it is late{at_context(curve)}: {'; '.join(late)}."
    )


def _cures(sweep: Sweep, cost: PathCost, curve: TStepCurve, batch: int) -> Iterator[str]:
    interval = sweep.smallest_interval(cost, curve, batch)
    if interval is not None:
        wait_s = (interval - 1) * curve(batch)
        yield f"a stream interval of {interval} (price: text up to {duration(wait_s)} later)"
    processes = sweep.processes(cost, curve, batch)
    if processes is not None:
        yield f"{processes} front-end processes (price: a core each)"
    cure = sweep.cost(CURE)
    if cure is not None and host_step_s(sweep, cure, batch) <= curve(batch):
        yield f"the {CURE} path (price: a change of the engine)"
    if sweep.record.scenario["stop"]:
        yield "shorter stop strings, or none (price: the model's end of turn must do)"
    if interval is None and processes is None:
        yield "no measured interval and no number of processes keeps up"
