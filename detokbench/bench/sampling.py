"""Samples of one subject: calibrated once, then taken in several visits.

Between the visits of one subject all others have theirs, in random order, so that a machine that
slows down for a moment does not slow one path alone.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter_ns

from detokbench.bench.fit import Line, slope_through_medians
from detokbench.bench.subjects import Subject, Timing

MULTIPLES = (1, 2, 3)
"""A line is fitted through times of N, 2N and 3N."""
_CLOCK_FLOORS_PER_SAMPLE = 1000
# Two at each visit, so that with several visits the median of a length leaves a disturbed one out.
_FEWEST_REPEATS = 2
_MOST_REPEATS = 10


@dataclass(frozen=True)
class Budget:
    """How long to spend on one subject in one process, in nanoseconds.

    ``rewarm_ns`` is run untimed at the start of each visit, for subjects that are to be timed with
    warm caches whatever ran before them.
    """

    warmup_ns: int
    visit_ns: int
    visits: int
    rewarm_ns: int = 0


@dataclass
class Samples:
    """Everything timed of one subject in one process."""

    base: int = 0
    warmup_ns: int = 0
    timings: dict[int, list[Timing]] = field(default_factory=dict)

    def add(self, n: int, timing: Timing) -> None:
        self.timings.setdefault(n, []).append(timing)

    def points(self) -> list[tuple[int, float, list[int]]]:
        """``(n, units, [ns, …])``, the units as the median over the repetitions."""
        return [
            (n, median(t.units for t in timings), [t.ns for t in timings])
            for n, timings in sorted(self.timings.items())
        ]

    def line(self) -> Line:
        """Nanoseconds over units. With one N only, the line goes through the origin."""
        points = [(units, ns) for _, units, ns in self.points()]
        if len(points) == 1:
            units, ns = points[0]
            return Line(median(ns) / units, 0.0)
        return slope_through_medians(points)


def clock_floor_ns(reads: int = 2001) -> int:
    """What two readings of the clock differ by when nothing lies between them."""
    gaps = []
    for _ in range(reads):
        start = perf_counter_ns()
        gaps.append(perf_counter_ns() - start)
    return round(median(gaps))


def warm_up_and_calibrate(subject: Subject, budget: Budget, floor_ns: int) -> Samples:
    """Run a subject until the warm-up time is over, doubling N until a sample is long enough.

    Long enough is a thousand readings of the clock, so that its resolution is under 0.1 %.
    """
    samples = Samples(base=1)
    most = max(1, subject.limit // MULTIPLES[-1])
    long_enough = floor_ns * _CLOCK_FLOORS_PER_SAMPLE
    start = perf_counter_ns()
    while True:
        timing = subject.run(samples.base)
        if timing.ns < long_enough and samples.base < most:
            samples.base = min(samples.base * 2, most)
        elif perf_counter_ns() - start >= budget.warmup_ns:
            break
    samples.warmup_ns = perf_counter_ns() - start
    return samples


def visit(subject: Subject, samples: Samples, budget: Budget) -> None:
    """Take every multiple of N as often as the time of a visit allows, at least twice."""
    sizes = [samples.base * multiple for multiple in MULTIPLES]
    sizes = [n for n in sizes if n <= subject.limit] or [subject.limit]
    start = perf_counter_ns()
    while perf_counter_ns() - start < budget.rewarm_ns:
        subject.run(sizes[-1])
    start = perf_counter_ns()
    for repeat in range(1, _MOST_REPEATS + 1):
        for n in sizes:
            samples.add(n, subject.run(n))
        if repeat >= _FEWEST_REPEATS and perf_counter_ns() - start >= budget.visit_ns:
            break


@contextmanager
def quiet_gc(keep_on: bool) -> Iterator[None]:
    """The garbage collector off while timing, unless ``keep_on``; what exists is left out of it.

    A collection in the middle of a sample would walk the whole vocabulary.
    """
    gc.collect()
    gc.freeze()
    was_on = gc.isenabled()
    if not keep_on:
        gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
        gc.unfreeze()
