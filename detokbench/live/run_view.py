"""One run's totals at any time, read from the samples of its processes, and its window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil

from detokbench.live.counting import Sample
from detokbench.live.one_run import Answers
from detokbench.live.plan import EngineFacts
from detokbench.live.setup import Asked
from detokbench.live.topology import CLIENTS, ENGINE
from detokbench.records.pipeline import Point

_MOST_POINTS = 240
_GRID_S = 0.05
Read = Callable[[Sample], int]
"""Which of a sample's totals is meant."""


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

    def last(self, read: Read) -> float:
        """The total at the end."""
        return read(self._samples[-1]) if self._samples else 0.0

    def gained(self, begin_ns: float, end_ns: float, read: Read) -> float:
        """What the total gained between two times."""
        return self.at(end_ns, read) - self.at(begin_ns, read)


class RunView:
    """One run's answers, with the times that its window has."""

    def __init__(self, answers: Answers, asked: Asked) -> None:
        self.answers = answers
        self.asked = asked
        self.processes = asked.processes
        self._samples = {
            name: [*samples, *_ends(answers, name)] for name, samples in answers.samples.items()
        }
        self.totals = {name: Totals(samples) for name, samples in self._samples.items()}
        self.engine = _engine_facts(answers)
        warm_up_ns = answers.request.warm_up_s * 1e9
        self.begin_ns = min(self.engine.start_ns + warm_up_ns, self.engine.end_ns)
        self.end_ns = float(self.engine.end_ns)

    @property
    def window_s(self) -> float:
        return (self.end_ns - self.begin_ns) * 1e-9

    def grid(self) -> list[float]:
        """Times at even distances of about 50 ms, from the window's begin to its end."""
        count = max(ceil(self.window_s / _GRID_S), 1)
        return _evenly(self.begin_ns, self.end_ns, count)

    def sum_at(self, names: Sequence[str], at_ns: float, read: Read) -> float:
        """The total of several processes at a time."""
        return sum(self.totals[name].at(at_ns, read) for name in names)

    def gained(self, names: Sequence[str], read: Read) -> float:
        """What the totals of several processes gained within the window."""
        begin = self.sum_at(names, self.begin_ns, read)
        return self.sum_at(names, self.end_ns, read) - begin

    def undelivered(self, at_ns: float) -> float:
        """Ids emitted and not with a reader."""
        emitted = self.totals[ENGINE].at(at_ns, lambda s: s.ids)
        delivered = self.sum_at(self.processes.front_ends, at_ns, lambda s: s.delivered)
        return max(emitted - delivered, 0.0)

    def waiting(self, at_ns: float) -> float:
        """Ids emitted and not decoded."""
        emitted = self.totals[ENGINE].at(at_ns, lambda s: s.ids)
        decoded = self.sum_at(self.processes.decoding, at_ns, lambda s: s.ids)
        return max(emitted - decoded, 0.0)

    def series(self) -> list[Point]:
        """Points at even distances until the last sample, not too many of them."""
        start = self.engine.start_ns
        last = max((s.at_ns for samples in self._samples.values() for s in samples), default=0)
        count = min(max(ceil((last - start) * 1e-9 / _GRID_S), 1), _MOST_POINTS)
        times = _evenly(start, last, count)
        return [self._point(before, at_ns) for before, at_ns in pairwise([start, *times])]

    def _point(self, before_ns: float, at_ns: float) -> Point:
        """A moment, and the ITL of the sampled streams since the one before."""
        readers = (CLIENTS,) if self.asked.http else self.processes.front_ends

        def gained(read: Read) -> float:
            return sum(self.totals[name].gained(before_ns, at_ns, read) for name in readers)

        ids, gap_ns = gained(lambda s: s.gap_ids), gained(lambda s: s.gap_ns)
        return Point(
            round((at_ns - self.engine.start_ns) * 1e-9, 4),
            round(self.waiting(at_ns), 1),
            round(self.undelivered(at_ns), 1),
            round(gap_ns / ids * 1e-9, 7) if ids >= 1 else None,
        )


def _ends(answers: Answers, name: str) -> list[Sample]:
    """The samples of a process at the begin and the end of the run, where it lived to say."""
    done = answers.done.get(name)
    return [] if done is None else [done.first, done.last]


def _engine_facts(answers: Answers) -> EngineFacts:
    """What the engine says of its schedule; where it died, as far as its samples go."""
    done = answers.done.get(ENGINE)
    if done is not None and done.engine is not None:
        return done.engine
    times = [sample.at_ns for sample in answers.samples.get(ENGINE, [])]
    return EngineFacts(
        start_ns=min(times, default=0), end_ns=max(times, default=0), steps=0, late_steps=0,
        drift_ns=0, worst_ns=0, requests=0, finished=0, aborted=0,
    )  # fmt: skip


def _evenly(begin: float, end: float, count: int) -> list[float]:
    """Times at even distances, the first and the last included."""
    return [begin + (end - begin) * i / count for i in range(count + 1)]
