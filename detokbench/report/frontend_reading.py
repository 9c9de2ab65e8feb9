"""What a ``frontend`` record says, in a few sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from detokbench.records.frontend import (
    FrontendDetails,
    FrontendLimit,
    FrontendRun,
    details_of,
)
from detokbench.records.schema import Record
from detokbench.report.frontend_runs import (
    answer_text,
    common_run,
    limits_of,
    main_run,
    own_cpu_s,
    rate_text,
    variant_pairs,
)
from detokbench.report.units import duration, microseconds, milliseconds, significant, times

_TOGETHER = 1.2
_TELLING = 0.1


def read_frontend(record: Record) -> list[str]:
    """One sentence for each thing that the record can tell."""
    details = details_of(record)
    return [
        *_against_each_other(details),
        *_costs(details),
        *_limits(details),
        *_crossovers(details),
        *_variants(details),
        *_open_ends(details),
        *_texts(details),
    ]


def _against_each_other(details: FrontendDetails) -> Iterator[str]:
    """Several engines at the same point, the cheapest first."""
    costs = {
        name: cost
        for name, run in common_run(details).items()
        if (cost := own_cpu_s(run)) is not None
    }
    if len(costs) < 2:
        return
    run = next(iter(common_run(details).values()))
    cheap, *others = sorted(costs, key=lambda name: costs[name])
    beside = ", ".join(
        f"{name} {_us(costs[name])} ({times(costs[name] / costs[cheap])})" for name in others
    )
    yield (
        f"A token costs {cheap} {_us(costs[cheap])} of CPU, {beside}, at {run.streams} streams and "
        f"a step of {milliseconds(run.t_step_s)} ms (measured; all processes of the front end, "
        "requests and connections included)."
    )


def _costs(details: FrontendDetails) -> Iterator[str]:
    """How the cost of a token falls with the streams that share a step."""
    for engine in details.engines:
        run = main_run(details, engine.name)
        cost = None if run is None else own_cpu_s(run)
        few = _fewest(details, engine.name, run)
        if run is None or cost is None or few is None:
            continue
        alone = own_cpu_s(few)
        if alone is not None:
            yield (
                f"{engine.name}: {_us(cost)} of CPU a token at {run.streams} streams, "
                f"{_us(alone)} at {few.streams}: what a step costs is shared (measured)."
            )


def _fewest(details: FrontendDetails, engine: str, run: FrontendRun | None) -> FrontendRun | None:
    """The run with the fewest streams at the same T_step; None where that is the run itself."""
    if run is None:
        return None
    alike = [
        r
        for r in details.runs
        if r.engine == engine and r.of == "grid" and r.t_step_s == run.t_step_s
    ]
    few = min(alike, key=lambda r: r.streams, default=None)
    return few if few is not None and few.streams < run.streams else None


def _limits(details: FrontendDetails) -> Iterator[str]:
    for engine in details.engines:
        found = limits_of(details, engine.name)
        if not found:
            continue
        limit = found[-1]
        if limit.held_s is None:
            yield f"{engine.name} holds no rate at {limit.streams} streams: {limit.why}."
            continue
        merged = _merged(details, limit)
        beyond = f"; beyond it {limit.why}" if limit.why else ""
        yield (
            f"{engine.name} holds {rate_text(limit)} tokens/s at {limit.streams} streams, a step "
            f"of {milliseconds(limit.held_s)} ms (measured){merged}{beyond}."
        )


def _merged(details: FrontendDetails, limit: FrontendLimit) -> str:
    """That events came together at the limit, though each was an event of its own."""
    for run in details.runs:
        at_limit = (run.engine, run.streams, run.t_step_s) == (
            limit.engine,
            limit.streams,
            limit.held_s,
        )
        if at_limit and run.holds and run.events_per_read and run.events_per_read > _TOGETHER:
            return f", {significant(run.events_per_read, 2)} events in a read"
    return ""


def _crossovers(details: FrontendDetails) -> Iterator[str]:
    for answer in details.answers:
        sentence = (
            f"{answer.engine} against {details.gpu} with {details.shape} at context "
            f"{answer.context} (roofline, modelled): B* {answer_text(answer)}"
        )
        several = {batch: need for batch, need in answer.needed.items() if need != 1}
        if several:
            batch, need = next(iter(several.items()))
            count = "more than any number of" if need is None else f"{need}"
            sentence += f"; a batch of {batch} needs {count} front ends, each with cores of its own"
        yield sentence + "."


def _variants(details: FrontendDetails) -> Iterator[str]:
    for engine in details.engines:
        parts, beside = [], None
        for run, plain in variant_pairs(details, engine.name):
            cost, beside = own_cpu_s(run), own_cpu_s(plain)
            if cost is not None and beside is not None:
                parts.append(f"{run.variant} {_more(cost, beside)}")
        if parts and beside is not None:
            yield (
                f"{engine.name}, beside plain completions at {_us(beside)} "
                f"a token: {'; '.join(parts)} (measured)."
            )


def _more(cost_s: float, plain_s: float) -> str:
    """What a variant costs more; one run of each cannot tell less than a tenth."""
    if abs(cost_s - plain_s) < _TELLING * plain_s:
        return "no difference that could be told"
    return f"{'+' if cost_s > plain_s else '−'}{_us(abs(cost_s - plain_s))}"


def _open_ends(details: FrontendDetails) -> Iterator[str]:
    """How each front end ends a stream inside a character, alike ones together."""
    groups: dict[str, list[str]] = {}
    for seen in details.open_ends:
        groups.setdefault(_behind(seen.behind, seen.finish), []).append(seen.engine)
    if groups:
        parts = "; ".join(f"{', '.join(names)}: {what}" for what, names in groups.items())
        yield f"A stream that ends inside a character: {parts}."


def _behind(behind: str | None, finish: str) -> str:
    if behind is None:
        return f"not to be seen ({finish})"
    if not behind:
        return "what is open is dropped"
    if set(behind) == {"\ufffd"}:
        return f"{len(behind)} U+FFFD"
    return repr(behind)


def _texts(details: FrontendDetails) -> Iterator[str]:
    checked = sum(run.checked for run in details.runs)
    wrong = [run for run in details.runs if run.wrong]
    if not checked:
        return
    if wrong:
        run = wrong[0]
        count = sum(run.wrong for run in wrong)
        yield (
            f"{count:,} of {checked:,} streams have another text than their ids: {run.engine}, "
            f"{run.variant}: {run.first_difference}."
        )
        return
    kept = min(run.kept_share for run in details.runs)
    part = "" if kept > 0.9 else f"; at the highest rates one stream in {1 / kept:.0f} was read"
    yield (
        f"The text of all {checked:,} streams read is that of the ids sent, whole or up to where "
        f"the run ended{part}."
    )


def _us(seconds: float) -> str:
    return f"{microseconds(seconds)} µs" if seconds < 1e-3 else duration(seconds)
