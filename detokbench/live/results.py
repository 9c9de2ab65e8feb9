"""From what the processes answered to the facts of a run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import ceil
from statistics import median

from detokbench.live.counting import Sample
from detokbench.live.judge import slope, why_broken
from detokbench.live.one_run import Answers
from detokbench.live.plan import Done, EngineFacts
from detokbench.live.setup import Asked
from detokbench.live.topology import CLIENTS, ENGINE
from detokbench.records.pipeline import Hop, Point, ProcessFacts, Quantiles, RunFacts, RunOf

_CLIENT_BOUND = 0.8
_MOST_POINTS = 240
_MOST_WEIGHED = 60
_GRID_S = 0.05
_BEYOND = 2  # samples that must lie beyond a percentile
_NOTHING = Quantiles(count=0, mean=None, p50=None, p90=None, p99=None, longest=None)
Read = Callable[[Sample], int]


def quantiles(values: Iterable[tuple[int, int]]) -> Quantiles:
    """Of (ns, weight): nearest rank, each value as often as its weight says; in seconds.

    A percentile needs two values beyond it, counted without weights: the ids of one chunk share
    one measured gap.
    """
    ordered = sorted(values)
    if not ordered:
        return _NOTHING
    reach: list[int] = []
    total = 0
    for _, weight in ordered:
        total += weight
        reach.append(total)

    def at(percent: float) -> float:
        return ordered[bisect_left(reach, max(percent / 100 * total, 1))][0] * 1e-9

    def above_floor(percent: int) -> float | None:
        return at(percent) if len(ordered) >= _BEYOND * 100 / (100 - percent) else None

    return Quantiles(
        count=len(ordered),
        mean=sum(value * weight for value, weight in ordered) / total * 1e-9,
        p50=above_floor(50),
        p90=above_floor(90),
        p99=above_floor(99),
        longest=ordered[-1][0] * 1e-9,
        curve=[at(percent) for percent in range(101)] if above_floor(90) is not None else [],
    )


class Totals:
    """The totals of one process over time, straight between its samples."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = sorted(samples, key=lambda sample: sample.at_ns)
        self._times = [sample.at_ns for sample in self._samples]

    def at(self, at_ns: float, read: Read) -> float:
        """The total at a time; the first and the last hold beyond their ends."""
        if not self._samples:
            return 0.0
        place = bisect_left(self._times, at_ns)
        if place == 0:
            return read(self._samples[0])
        if place == len(self._times):
            return read(self._samples[-1])
        before, after = self._samples[place - 1], self._samples[place]
        share = (at_ns - before.at_ns) / (after.at_ns - before.at_ns)
        return read(before) + share * (read(after) - read(before))

    def gained(self, begin_ns: float, end_ns: float, read: Read) -> float:
        """What the total gained between two times."""
        return self.at(end_ns, read) - self.at(begin_ns, read)


class RunView:
    """One run's answers, with the times that its window has."""

    def __init__(self, answers: Answers, asked: Asked) -> None:
        self.answers = answers
        self.asked = asked
        processes = asked.processes
        self.totals = {
            name: Totals([*samples, *self._ends(name)]) for name, samples in answers.samples.items()
        }
        self._decoding, self._front_ends = processes.decoding, processes.front_ends
        engine = self._engine_done()
        facts = None if engine is None else engine.engine
        first = min((s.at_ns for s in answers.samples.get(ENGINE, [])), default=0)
        last = max((s.at_ns for s in answers.samples.get(ENGINE, [])), default=0)
        self.engine = facts or EngineFacts(
            start_ns=first, end_ns=last, steps=0, late_steps=0, drift_ns=0, worst_ns=0,
            requests=0, finished=0, aborted=0,
        )  # fmt: skip
        warm_up_ns = answers.request.warm_up_s * 1e9
        self.begin_ns = min(self.engine.start_ns + warm_up_ns, self.engine.end_ns)
        self.end_ns = float(self.engine.end_ns)

    def _engine_done(self) -> Done | None:
        return self.answers.done.get(ENGINE)

    def _ends(self, name: str) -> list[Sample]:
        done = self.answers.done.get(name)
        return [] if done is None else [done.first, done.last]

    @property
    def window_s(self) -> float:
        return (self.end_ns - self.begin_ns) * 1e-9

    def grid(self) -> list[float]:
        """Times at even distances of about 50 ms, from the window's begin to its end."""
        count = max(ceil(self.window_s / _GRID_S), 1)
        length = self.end_ns - self.begin_ns
        return [self.begin_ns + length * i / count for i in range(count + 1)]

    def sum_at(self, names: Sequence[str], at_ns: float, read: Read) -> float:
        return sum(self.totals[name].at(at_ns, read) for name in names)

    def gained(self, names: Sequence[str], read: Read) -> float:
        """What the totals of several processes gained within the window."""
        begin = self.sum_at(names, self.begin_ns, read)
        return self.sum_at(names, self.end_ns, read) - begin

    def undelivered(self, at_ns: float) -> float:
        """Ids emitted and not with a reader."""
        emitted = self.totals[ENGINE].at(at_ns, lambda s: s.ids)
        return max(emitted - self.sum_at(self._front_ends, at_ns, lambda s: s.delivered), 0.0)

    def waiting(self, at_ns: float) -> float:
        """Ids emitted and not decoded."""
        emitted = self.totals[ENGINE].at(at_ns, lambda s: s.ids)
        return max(emitted - self.sum_at(self._decoding, at_ns, lambda s: s.ids), 0.0)

    def readers(self) -> tuple[str, ...]:
        """Where sampled streams are read."""
        return (CLIENTS,) if self.asked.http else self._front_ends

    def series(self) -> list[Point]:
        """Points at even distances until the last sample, not too many of them."""
        seen = [s for name in self.totals for s in (*self.answers.samples[name], *self._ends(name))]
        last = max((sample.at_ns for sample in seen), default=0)
        start = self.engine.start_ns
        count = min(max(ceil((last - start) * 1e-9 / _GRID_S), 1), _MOST_POINTS)
        times = [start + (last - start) * i / count for i in range(count + 1)]
        points = []
        for before, at_ns in zip([start, *times], times, strict=False):
            ids = self._sampled(before, at_ns, lambda s: s.gap_ids)
            gap = self._sampled(before, at_ns, lambda s: s.gap_ns)
            points.append(
                Point(
                    round((at_ns - start) * 1e-9, 4),
                    round(self.waiting(at_ns), 1),
                    round(self.undelivered(at_ns), 1),
                    round(gap / ids * 1e-9, 7) if ids >= 1 else None,
                )
            )
        return points

    def _sampled(self, begin_ns: float, end_ns: float, read: Read) -> float:
        return sum(self.totals[n].gained(begin_ns, end_ns, read) for n in self.readers())


def run_facts(answers: Answers, asked: Asked, of: RunOf) -> RunFacts:
    """The facts of one run, also of one that ended early."""
    view = RunView(answers, asked)
    engine, request = view.engine, answers.request
    processes = asked.processes
    emitted = view.gained((ENGINE,), lambda s: s.ids)
    delivered = view.gained(processes.front_ends, lambda s: s.delivered)
    chunks = view.gained(processes.front_ends, lambda s: s.chunks)
    growth = slope(_undelivered_points(view))
    rate = emitted / view.window_s if view.window_s > 0 else 0.0
    itl = quantiles(_all(answers, lambda done: done.itl))
    lag = growth / rate if rate > 0 else 0.0
    typical = _typical_chunks(view)
    checked = answers.checked
    shares = [_process(view, name) for name in answers.samples if name in answers.done]
    client = next((p.cpu_share for p in shares if p.name == CLIENTS), None)
    due = min(request.duration_s, (engine.end_ns - engine.start_ns) * 1e-9) / asked.t_step_s
    return RunFacts(
        of=of,
        batch=request.batch,
        duration_s=(engine.end_ns - engine.start_ns) * 1e-9,
        window_s=view.window_s,
        steps=engine.steps,
        late_steps=engine.late_steps,
        drift_s=engine.drift_ns * 1e-9,
        worst_late_s=engine.worst_ns * 1e-9,
        check_s_per_step=engine.check_ns * 1e-9 / engine.steps if engine.steps else 0.0,
        requests=engine.requests,
        finished=engine.finished,
        aborted=engine.aborted,
        ids=round(view.totals[ENGINE].at(1 << 62, lambda s: s.ids)),
        itl=itl,
        gap=quantiles(_all(answers, lambda done: done.gaps)),
        chunks_per_token=chunks / delivered if delivered > 0 else None,
        typical_chunks_per_token=typical,
        undelivered_ids=view.undelivered(view.end_ns),
        growth_ids_per_s=growth,
        lag_s_per_s=lag,
        broken=why_broken(
            asked.topology,
            chunks_per_token=typical,
            interval=asked.interval,
            lag_s_per_s=lag,
            itl_s=itl.mean,
            t_step_s=asked.t_step_s,
            steps_share=_steps_share(engine, due),
            busiest_share=max(
                (p.cpu_share or 0.0 for p in shares if p.name in processes.host), default=0.0
            ),
        ),
        hops=_hops(answers),
        processes=shares,
        checked=0 if checked is None else checked.checked,
        wrong=0 if checked is None else checked.wrong,
        first_difference="" if checked is None else checked.first,
        client_share=client,
        is_client_bound=client is not None and client > _CLIENT_BOUND,
        series=view.series(),
    )


def _steps_share(engine: EngineFacts, due: float) -> float:
    """Steps done of those that were due until the run's end."""
    return min(engine.steps / due, 1.0) if due >= 1 else 1.0


def _undelivered_points(view: RunView) -> list[tuple[float, float]]:
    return [(at_ns * 1e-9, view.undelivered(at_ns)) for at_ns in view.grid()]


def _typical_chunks(view: RunView) -> float | None:
    """Chunks a token in the median piece of the window."""
    names = view.asked.processes.front_ends
    chunks = [view.sum_at(names, at_ns, lambda s: s.chunks) for at_ns in view.grid()]
    ids = [view.sum_at(names, at_ns, lambda s: s.delivered) for at_ns in view.grid()]
    pieces = [
        (after - before) / (later - earlier)
        for (before, after), (earlier, later) in zip(pairwise(chunks), pairwise(ids), strict=True)
        if later - earlier >= 1
    ]
    return median(pieces) if pieces else None


def _all(
    answers: Answers, read: Callable[[Done], list[tuple[int, int]]]
) -> Iterable[tuple[int, int]]:
    return [value for done in answers.done.values() for value in read(done)]


def _hops(answers: Answers) -> list[Hop]:
    return [
        Hop(name=name if hop == "client" else f"{name} {hop}", delay=quantiles(values))
        for name, done in answers.done.items()
        if name != ENGINE
        for hop, values in done.delays.items()
    ]


def _process(view: RunView, name: str) -> ProcessFacts:
    done = view.answers.done[name]
    cpu_s = view.gained((name,), lambda s: s.cpu_ns) * 1e-9
    steps = view.gained((ENGINE,), lambda s: s.steps)
    return ProcessFacts(
        name=name,
        cpu_share=cpu_s / view.window_s if view.window_s > 0 else None,
        cpu_s=(done.last.cpu_ns - done.first.cpu_ns) * 1e-9,
        cpu_s_per_step=cpu_s / steps if steps > 0 else None,
        longest_block_s=done.longest_block_ns * 1e-9 if done.longest_block_ns else None,
        memory=_thinned(view.answers.memory.get(name, []), view.engine.start_ns),
        states_left=done.states_left,
    )


def _thinned(weighed: list[tuple[int, int]], start_ns: int) -> list[tuple[float, int]]:
    step = ceil(len(weighed) / _MOST_WEIGHED) or 1
    return [(round((at_ns - start_ns) * 1e-9, 2), size) for at_ns, size in weighed[::step]]
