"""What holding text back for a stop does to a reader who streams: how late it is, and how cut.

A fixed hold (vLLM) and a hold of real prefixes (our matcher) are compared on the same pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from detokbench.stops.characters import CharacterStops
from detokbench.stops.matcher import MatcherStops
from detokbench.stops.request import StopRequest, StopStream


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


def fixed_hold(pieces: Sequence[str], strings: Sequence[str]) -> HoldMetrics:
    """As vLLM streams these pieces with these stop strings."""
    return hold_metrics(
        pieces, _deltas(CharacterStops(StopRequest(tuple(strings)), _Pieces(pieces)), len(pieces))
    )


def prefix_hold(pieces: Sequence[str], strings: Sequence[str]) -> HoldMetrics:
    """As our matcher streams them. Raises a usage error for an empty stop string."""
    return hold_metrics(
        pieces, _deltas(MatcherStops(StopRequest(tuple(strings)), _Pieces(pieces)), len(pieces))
    )


def _lengths(parts: Sequence[str]) -> list[int]:
    return list(accumulate(map(len, parts)))


def _deltas(stream: StopStream, steps: int) -> list[str]:
    """What goes out after each step, up to the one before the stream's end."""
    deltas = []
    for step in range(steps):
        delta = stream.step([step])
        if stream.finish is not None:
            break
        deltas.append(delta)
    return deltas


class _Pieces:
    """A row whose ids are the numbers of its pieces."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def step(self, new_ids: list[int]) -> str:
        return "".join(self._pieces[i] for i in new_ids)

    def end(self) -> str:
        return ""
