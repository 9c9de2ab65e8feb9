"""Stops of a request: over characters as vLLM, over a tail of tokens as SGLang, and our matcher.

What works over tokens takes ``encode`` and ``decode`` callables, so that it can be measured with a
tokenizer and tested without one.
"""

from __future__ import annotations

from detokbench.stops.characters import CharacterStops
from detokbench.stops.matcher import MatcherStops, MatchState, StopMatch, StopMatcher
from detokbench.stops.request import StopFinish, StopRequest, StopStream, StopStyle, TextRow
from detokbench.stops.tail_window import Decode, Encode
from detokbench.stops.tokens import TokenStops
from detokbench.stops.validation import refuse_empty_stop, refuse_stops_without_text

__all__ = [
    "CharacterStops",
    "MatchState",
    "MatcherStops",
    "StopFinish",
    "StopMatch",
    "StopMatcher",
    "StopRequest",
    "StopStream",
    "StopStyle",
    "TokenStops",
    "open_stop_stream",
]


class _NoText:
    """The row of a request that is not detokenised."""

    def step(self, new_ids: list[int]) -> str:
        return ""

    def end(self) -> str:
        return ""


def open_stop_stream(
    style: StopStyle, request: StopRequest, row: TextRow | None, encode: Encode, decode: Decode
) -> StopStream:
    """A row with stops looked for in this style; without a row stop ids alone can end it.

    ``encode`` and ``decode`` serve ``tokens`` alone; ``decode`` must keep special tokens. Raises a
    usage error for an empty stop string, for any over text without a row, for an invalid regex,
    and for any regex in a style that has none.
    """
    refuse_stops_without_text(request.strings, request.regexes, detokenize=row is not None)
    for string in request.strings:
        refuse_empty_stop(string)
    row = row or _NoText()
    match style:
        case "characters":
            return CharacterStops(request, row)
        case "tokens":
            return TokenStops(request, row, encode, decode)
        case "matcher":
            return MatcherStops(request, row)
