"""The distributions of a probe's figures over all its streams, as its record keeps them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
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
    return Distribution(
        samples=len(gaps),
        mean_s=mean_itl_s(gaps),
        p50_s=None if spread else token_percentile(gaps, 50),
        p90_s=None if spread else token_percentile(gaps, 90),
        p99_s=None if spread else token_percentile(gaps, 99),
        max_s=None if spread else max((gap.itl_s for gap in gaps), default=None),
        points=[] if spread else _thinned_by_token(sorted(gaps)),
    )


def _thinned_by_token(gaps: Sequence[TokenGap]) -> list[float]:
    """As ``_thinned`` of a value for each token, without ever holding one for each."""
    ends = list(accumulate(round(gap.tokens) for gap in gaps))
    tokens = ends[-1] if ends else 0
    return [gaps[bisect_right(ends, place)].itl_s for place in _places(tokens)]


def _thinned(values: list[float]) -> list[float]:
    """At most a few hundred of the sorted values, evenly picked, first and last among them."""
    return [values[place] for place in _places(len(values))]


def _places(values: int) -> Sequence[int]:
    """Which of so many values are kept."""
    if values <= _MOST_POINTS:
        return range(values)
    return [round(pick * (values - 1) / (_MOST_POINTS - 1)) for pick in range(_MOST_POINTS)]
