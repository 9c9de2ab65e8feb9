"""What an ``encode`` record says, in at most five sentences made from its numbers."""

from __future__ import annotations

from detokbench.records.encode import ArrivalCell, StallCell
from detokbench.records.schema import Record
from detokbench.report.encode_figures import GROWING_PATH, EncodeFigures
from detokbench.report.units import count, duration, microseconds, significant, times

_CLEARLY = 0.9  # a wait below this share of another counts as shorter
_HELD, _FREE = 0.8, 0.5
_ADVICE = (
    " Admit longer ones in another thread or process, or by a path that does not decode the prompt."
)


def read_encode(record: Record) -> list[str]:
    """What to do, and why."""
    figures = EncodeFigures(record)
    sentences = [
        _cost(figures),
        _gil(figures),
        _threads(figures),
        _micro_batcher(figures),
        _stall(figures),
    ]
    return [sentence for sentence in sentences if sentence]


def _cost(figures: EncodeFigures) -> str | None:
    lengths = figures.details.lengths
    costs = [
        (length, row.median)
        for length in lengths
        if figures.calls and (row := figures.one(figures.calls[0], length)) and row.median
    ]
    if not costs:
        return None
    (short, short_s), (long, long_s) = costs[0], costs[-1]
    growth = ""
    if len(costs) > 1:
        growth = (
            f", {microseconds(short_s / figures.ids(short))} µs an id at {count(short)} ids and "
            f"{microseconds(long_s / figures.ids(long))} at {count(long)}"
        )
    return (
        f"{figures.calls[0]} takes {duration(long_s)} of one core for {count(long)} ids{growth}: "
        "on an event loop nobody else is served meanwhile."
    )


def _gil(figures: EncodeFigures) -> str | None:
    facts = figures.details.gil
    held = [fact for fact in facts if fact.blocked_s > _HELD * fact.call_s]
    free = [fact for fact in facts if fact.blocked_s < _FREE * fact.call_s]
    parts = []
    if held:
        each = ", ".join(f"{f.call} ({_of(f.blocked_s, f.call_s)})" for f in held)
        parts.append(f"{each} holds the GIL: a thread does not free the loop of it")
    if free:
        each = ", ".join(f"{f.call} ({_of(f.blocked_s, f.call_s)})" for f in free)
        parts.append(f"{each} lets others run: call that one, in a thread")
    return f"{'; '.join(parts)}." if parts else None


def _of(blocked_s: float, call_s: float) -> str:
    return f"others stood still for {duration(min(blocked_s, call_s))} of {duration(call_s)}"


def _threads(figures: EncodeFigures) -> str | None:
    threads = figures.details.threads
    if threads == 1 or not figures.list_calls or not figures.batched():
        return None
    call = figures.list_calls[0]
    batch, length = figures.batched()[-1]
    alone = figures.one(figures.calls[0], length)
    one, all_threads = (figures.many(call, batch, length, n) for n in (1, threads))
    if not (alone and one and all_threads):
        return None
    if not (alone.median and one.median and all_threads.median):
        return None
    gain = "; nothing is gained here"
    if all_threads.median < _CLEARLY * alone.median:
        more_threads = all_threads.median < _CLEARLY * one.median
        gain = f"; meanwhile the call keeps {threads} cores busy" if more_threads else ""
    return (
        f"A list of {batch} prompts of {count(length)} ids in one call, against one call each: "
        f"{times(alone.median / one.median)} the speed on 1 thread, "
        f"{times(alone.median / all_threads.median)} on {threads} threads{gain}."
    )


def _micro_batcher(figures: EncodeFigures) -> str | None:
    """Where the micro-batcher has the shortest median wait, and what it costs where it is idle."""
    parts = []
    for length in dict.fromkeys(length for length, _ in figures.streams()):
        rates = [rate for at, rate in figures.streams() if at == length]
        pays = _paying(figures, length, rates)
        where = "at no rate measured"
        if pays:
            first = figures.arrival("micro-batch", length, pays[0])
            others = ", ".join(
                f"{way} {_wait(figures.arrival(way, length, pays[0]))}"
                for way in ("direct", "executor")
            )
            where = (
                f"from {pays[0]:g} requests/s on"
                f"{_load(first)}: median wait {_wait(first)}, {others}"
            )
        parts.append(f"with {count(length)} ids {where}")
    if not parts:
        return None
    return f"The micro-batcher pays {'; '.join(parts)}."


def _paying(figures: EncodeFigures, length: int, rates: list[float]) -> list[float]:
    """The rates from which on it always pays: a single one below others that do not is chance."""
    paying: list[float] = []
    for rate in sorted(rates, reverse=True):
        if not _pays(figures, length, rate):
            break
        paying.insert(0, rate)
    return paying


def _pays(figures: EncodeFigures, length: int, rate: float) -> bool:
    batched = figures.arrival("micro-batch", length, rate)
    others = [figures.arrival(way, length, rate) for way in ("direct", "executor")]
    waits = [cell.median_s for cell in others if cell and cell.median_s is not None]
    if batched is None or batched.median_s is None or len(waits) < len(others):
        return False
    # With requests given up, the median of those that were served flatters.
    fewest = min(cell.unfinished for cell in others if cell)
    return batched.median_s < _CLEARLY * min(waits) and batched.unfinished <= fewest


def _wait(cell: ArrivalCell | None) -> str:
    return "–" if cell is None or cell.median_s is None else duration(cell.median_s)


def _load(cell: ArrivalCell | None) -> str:
    if cell is None or cell.load is None:
        return ""
    return f" ({significant(cell.load, 2)} of one thread's time)"


def _stall(figures: EncodeFigures) -> str | None:
    """From which length on an admission stalls the others, by the measured medians."""
    cells = figures.stalls(GROWING_PATH)
    if not cells:
        return None
    longest, ids = cells[-1], figures.stalling_length()
    step = f"a T_step ({duration(figures.details.t_step_s)})"
    if ids is None:
        limit = f"no prompt up to {count(longest.length)} ids stalled the others for {step}"
    elif ids == 0:
        limit = f"even a prompt of {count(cells[0].length)} ids stalled the others for over {step}"
    else:
        limit = (
            f"a prompt stalls the others for over {step} from about {significant(ids, 2)} ids on, "
            "between measured lengths"
        )
    advice = "" if ids is None else _ADVICE
    return f"Admission under {GROWING_PATH}: {limit}; {_stalled(longest)}.{advice}"


def _stalled(cell: StallCell) -> str:
    blocked = duration(cell.blocked_s) if cell.blocked_s > 0 else "no time that can be told"
    modelled, worst = "", ""
    if cell.modelled_blocked_s is not None:
        modelled = f" (modelled: {duration(cell.modelled_blocked_s)})"
    if cell.worst_s is not None:
        worst = f", and the others' worst gap was {duration(cell.worst_s)}"
    return f"{count(cell.length)} ids took {blocked} in the median{modelled}{worst}"
