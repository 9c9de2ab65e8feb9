"""The distributions of a probe's figures over all its streams, as its record keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from detokbench.live.itl import TokenGap, mean_itl_s, token_percentile
from detokbench.model.latency import percentile
from detokbench.records.probe import Distribution

_MOST_POINTS = 400


def distribution(values: Sequence[float]) -> Distribution:
    """Of seconds that count once each."""
    return Distribution(
        samples=len(values),
        mean_s=fmean(values) if values else None,
        p50_s=percentile(values, 50),
        p90_s=percentile(values, 90),
        p99_s=percentile(values, 99),
        max_s=max(values, default=None),
        points=_thinned(sorted(values)),
    )


def token_distribution(gaps: Sequence[TokenGap], spread: bool) -> Distribution:
    """ITL per token; where tokens were ``spread`` evenly there is nothing but a mean."""
    points: list[float] = []
    if not spread:
        points = [gap.itl_s for gap in sorted(gaps) for _ in range(round(gap.tokens))]
    return Distribution(
        samples=len(gaps),
        mean_s=mean_itl_s(gaps),
        p50_s=None if spread else token_percentile(gaps, 50),
        p90_s=None if spread else token_percentile(gaps, 90),
        p99_s=None if spread else token_percentile(gaps, 99),
        max_s=None if spread else max((gap.itl_s for gap in gaps), default=None),
        points=_thinned(points),
    )


def _thinned(values: list[float]) -> list[float]:
    """At most a few hundred of the sorted values, evenly picked, first and last among them."""
    if len(values) <= _MOST_POINTS:
        return values
    last = len(values) - 1
    return [values[round(pick * last / (_MOST_POINTS - 1))] for pick in range(_MOST_POINTS)]
