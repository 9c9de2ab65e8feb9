"""What a list of waits says: median, 99th percentile where there are enough of them, worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

SAMPLES_BEYOND = 2
"""A percentile is given where at least so many samples lie beyond it.

It is then neither the largest sample nor decided by a single one. It asks for 4 samples for p50, 20
for p90 and 200 for p99.
"""


@dataclass(frozen=True)
class Latency:
    """In the unit of the waits; all None for none. ``p99`` is None below its sample floor."""

    median: float | None
    p99: float | None
    worst: float | None


def sample_floor(percent: int) -> int:
    """Samples that a percentile needs: ``SAMPLES_BEYOND`` of them beyond it."""
    return ceil(SAMPLES_BEYOND * 100 / (100 - percent))


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The nearest-rank percentile; None below its sample floor."""
    if len(values) < sample_floor(percent):
        return None
    return sorted(values)[ceil(percent * len(values) / 100) - 1]


def latency_of(waits: Sequence[float]) -> Latency:
    """Summarise waits, in any order."""
    if not waits:
        return Latency(None, None, None)
    ordered = sorted(waits)
    return Latency(median(ordered), percentile(ordered, 99), ordered[-1])
