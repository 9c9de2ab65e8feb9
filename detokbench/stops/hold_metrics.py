"""What holding text back for a stop does to a reader who streams: how late it is, and how cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class HoldMetrics:
    """Of one stream at one token a step.

    ``first_text_step`` counts steps from 1 and is None where all text came with the end.
    ``longest_held`` is the most characters decoded and not sent after a step. ``split_tokens``
    counts the deltas that end inside a token.
    """

    first_text_step: int | None
    longest_held: int
    split_tokens: int


def hold_metrics(pieces: Sequence[str], deltas: Sequence[str]) -> HoldMetrics:
    """``pieces[i]`` is the text that token ``i`` completed, ``deltas[i]`` what went out after it.

    Deltas may be fewer, where a stop ended the stream. What goes out at the end of the stream is
    not among them: it is cut where the text ends, or where a stop begins, and by no hold.
    """
    decoded, sent = _lengths(pieces), _lengths(deltas)
    token_ends = set(decoded)
    return HoldMetrics(
        first_text_step=next((step for step, delta in enumerate(deltas, 1) if delta), None),
        longest_held=max((d - s for d, s in zip(decoded, sent, strict=False)), default=0),
        split_tokens=sum(
            bool(delta) and end not in token_ends for delta, end in zip(deltas, sent, strict=True)
        ),
    )


def _lengths(parts: Sequence[str]) -> list[int]:
    return list(accumulate(map(len, parts)))
