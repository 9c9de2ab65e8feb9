"""The quantiles of gaps and delays, each counted as often as its weight says."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from detokbench.model.latency import sample_floor
from detokbench.records.pipeline import Quantiles

_NOTHING = Quantiles(count=0, mean=None, p50=None, p90=None, p99=None, longest=None)


def quantiles(values: Iterable[tuple[int, int]]) -> Quantiles:
    """Of (ns, weight): nearest rank, each value as often as its weight says; in seconds.

    The sample floor of a percentile counts values without their weights: the ids of one chunk
    share one measured gap.
    """
    ordered = sorted(values)
    if not ordered:
        return _NOTHING
    reach = list(accumulate(weight for _, weight in ordered))
    total = reach[-1]

    def at(percent: float) -> float:
        return ordered[bisect_left(reach, max(percent / 100 * total, 1))][0] * 1e-9

    def above_floor(percent: int) -> float | None:
        return at(percent) if len(ordered) >= sample_floor(percent) else None

    return Quantiles(
        count=len(ordered),
        mean=sum(value * weight for value, weight in ordered) / total * 1e-9,
        p50=above_floor(50),
        p90=above_floor(90),
        p99=above_floor(99),
        longest=ordered[-1][0] * 1e-9,
        curve=[at(percent) for percent in range(101)] if above_floor(90) is not None else [],
    )
