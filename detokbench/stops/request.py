"""What a request asks of stops, what ended it, and what a stream with stops is to its callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

StopStyle = Literal["characters", "tokens", "matcher"]
"""Over characters as vLLM, over a tail of tokens as SGLang, or by our own matcher."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """The stops of one request.

    ``keep_stop`` leaves what matched in the text (vLLM's ``include_stop_str_in_output``, SGLang's
    ``no_stop_trim``). A stop string counts only where it ends after the first ``min_tokens`` ids.
    """

    strings: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()
    stop_ids: frozenset[int] = frozenset()
    min_tokens: int = 0
    keep_stop: bool = False


@dataclass(frozen=True, slots=True)
class StopFinish:
    """What ended a stream: a stop string, the pattern of a regex, or a stop id.

    ``kept_ids`` counts the ids of the output that are kept, the one that completed the stop
    included. ``begin`` and ``end`` are offsets into the output's text, in characters; None where
    the engine does not know them.
    """

    matched: str | int
    kept_ids: int
    begin: int | None = None
    end: int | None = None


class TextRow(Protocol):
    """One row of a path: ids in, text out."""

    def step(self, new_ids: list[int]) -> str:
        """The text that these ids make final."""

    def end(self) -> str:
        """The text that was still held, as far as the path gives it."""


class StopStream(Protocol):
    """One row whose stops are looked for. After ``finish`` is set, steps are ignored."""

    @property
    def finish(self) -> StopFinish | None:
        """What ended the stream; None while it goes on."""

    @property
    def held(self) -> str:
        """Text that is decoded and kept back, since it may be the beginning of a stop."""

    def step(self, new_ids: list[int]) -> str:
        """The text that may go out now."""

    def end(self) -> str:
        """End the stream, if no stop has: what is still held, as far as it is given out."""
