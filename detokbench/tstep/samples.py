"""Samples of a repeated piece of work, and how far they lie apart. Knows no clock and no device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

# Captured work on a GPU of its own repeats within this; more means that something interferes.
SPREAD_LIMIT = 0.005

# Does so many rounds of the work and returns the seconds that one took, on average.
RoundClock = Callable[[int], float]


def take_samples(
    clock: RoundClock, samples: int, sample_s: float, warm_up_s: float
) -> tuple[float, ...]:
    """Seconds a round, ``samples`` times, each the mean over about ``sample_s`` seconds.

    Before that the work is repeated for ``warm_up_s``, so that clocks and caches settle.
    """
    clock(rounds_for(warm_up_s, clock(1)))
    rounds = rounds_for(sample_s, clock(1))
    return tuple(clock(rounds) for _ in range(samples))


def rounds_for(duration_s: float, round_s: float) -> int:
    """How many rounds last for about ``duration_s``; at least one."""
    return max(1, math.ceil(duration_s / round_s)) if round_s > 0 else 1


def relative_range(samples: Sequence[float]) -> float:
    """Largest minus smallest sample, over the median."""
    return (max(samples) - min(samples)) / median(samples)


def spread_warning(spread: float) -> str:
    """What to say about a spread; empty where it is small."""
    if spread <= SPREAD_LIMIT:
        return ""
    return f"samples spread by {spread:.1%}, over {SPREAD_LIMIT:.1%}: clocks moved or others ran"
