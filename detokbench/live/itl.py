"""Gaps between chunks and between tokens, from when chunks came and how many tokens each held.

Three figures that are often given one name. For chunks (s, tokens) 0.10/1, 0.20/4, 0.21/0, 0.40/3:

- gap between chunks: 100 ms on average over 3 gaps;
- gap between chunks with tokens: 150 ms over 2;
- ITL per token: a gap spread over the tokens of the chunk that ends it, and the gap of a chunk
  without tokens carried to the next token: 0.30 s over 7 tokens, 42.9 ms.

The tokens of the first chunk have no gap: what came before them is TTFT. Pure arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from detokbench.model.latency import sample_floor

PERCENTILES = (50, 90, 99)


class Arrival(NamedTuple):
    """A chunk: when it came, in seconds, and its tokens; a fraction where they are spread."""

    at_s: float
    tokens: float


class TokenGap(NamedTuple):
    """The ITL of the tokens of one chunk, in seconds, and how many tokens have it."""

    itl_s: float
    tokens: float


def chunk_gaps(arrivals: Sequence[Arrival]) -> list[float]:
    """Seconds between one chunk and the next, chunks without tokens included."""
    return [after.at_s - before.at_s for before, after in pairwise(arrivals)]


def filled_gaps(arrivals: Sequence[Arrival]) -> list[float]:
    """Seconds between one chunk with tokens and the next."""
    return chunk_gaps([arrival for arrival in arrivals if arrival.tokens > 0])


def token_gaps(arrivals: Sequence[Arrival]) -> list[TokenGap]:
    """The ITL of each chunk with tokens but the first, in order."""
    filled = [arrival for arrival in arrivals if arrival.tokens > 0]
    return [
        TokenGap((after.at_s - before.at_s) / after.tokens, after.tokens)
        for before, after in pairwise(filled)
    ]


def mean_itl_s(gaps: Sequence[TokenGap]) -> float | None:
    """Mean over tokens: all the time over all the tokens; None without any."""
    tokens = sum(gap.tokens for gap in gaps)
    return sum(gap.itl_s * gap.tokens for gap in gaps) / tokens if tokens else None


def token_percentile(gaps: Sequence[TokenGap], percent: int) -> float | None:
    """The ITL that so many per cent of the tokens do not exceed.

    None below the sample floor, for which gaps count and not tokens: the tokens of one chunk share
    one measured gap.
    """
    if len(gaps) < sample_floor(percent):
        return None
    reach = percent / 100 * sum(gap.tokens for gap in gaps)
    passed = 0.0
    for gap in sorted(gaps):
        passed += gap.tokens
        if passed >= reach:
            return gap.itl_s
    return max(gap.itl_s for gap in gaps)  # fractions of tokens, rounded
