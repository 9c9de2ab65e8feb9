"""The smallest stream that still breaks a law.

Ids are taken out in ever smaller runs until none can go (delta debugging: Zeller and Hildebrandt,
2002), then what is left is made plainer: ordinary words for other text, default flags, one id a
step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from detokbench.verify.stream import DEFAULT_FLAGS, Stream

Breaks = Callable[[Stream, "int | None"], bool]
"""Whether a stream at a number of ids a step still shows the fault."""
_MOST_TRIES = 1500
Part = Literal["prompt", "output"]
_PARTS: tuple[Part, ...] = ("prompt", "output")


class Shrinker:
    """One search, bounded by the number of streams that it may try."""

    def __init__(self, breaks: Breaks, plain_ids: Sequence[int]) -> None:
        """``plain_ids`` are what ids are replaced with where that changes nothing."""
        self._breaks = breaks
        self._plain = plain_ids
        self._left = _MOST_TRIES

    def shrink(
        self, stream: Stream, ids_per_step: int | None, first_wrong: int
    ) -> tuple[Stream, int | None]:
        """The smallest stream found, and its ids a step. ``first_wrong`` is a position in it."""
        for size in (1, 2, 3):
            if ids_per_step != 1 and self._holds(stream, size):
                ids_per_step = size
                break
        stream = self._cut_to(stream, ids_per_step, first_wrong)
        before = None
        while before != stream and self._left > 0:
            before = stream
            stream = self._without_ids(stream, ids_per_step, "prompt")
            stream = self._without_ids(stream, ids_per_step, "output")
            stream = self._plainer(stream, ids_per_step)
        return self._with_defaults(stream, ids_per_step), ids_per_step

    def _holds(self, stream: Stream, ids_per_step: int | None) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        return self._breaks(stream, ids_per_step)

    def _cut_to(self, stream: Stream, ids_per_step: int | None, first_wrong: int) -> Stream:
        """What lies far before or after the fault, in one go: texts have thousands of ids."""
        for after in (2, 16, 128):
            shorter = replace(stream, output=stream.output[: first_wrong + after])
            if len(shorter.output) < len(stream.output) and self._holds(shorter, ids_per_step):
                stream = shorter
                break
        for before in (4, 16, 64):
            cut = first_wrong - before
            if cut > 0:
                shorter = replace(stream, output=stream.output[cut:])
                if self._holds(shorter, ids_per_step):
                    return shorter
        return stream

    def _without_ids(self, stream: Stream, ids_per_step: int | None, part: Part) -> Stream:
        """Take runs of ids out of prompt or output, halves first, single ones last."""
        run = max(1, len(_ids_of(stream, part)) // 2)
        while True:
            for shorter in _with_runs_left_out(_ids_of(stream, part), run):
                smaller = _with_ids(stream, part, shorter)
                if (smaller.output or part == "prompt") and self._holds(smaller, ids_per_step):
                    stream = smaller
                    break
            else:
                if run == 1:
                    return stream
                run = max(1, run // 2)

    def _plainer(self, stream: Stream, ids_per_step: int | None) -> Stream:
        for part in _PARTS:
            for position in range(len(_ids_of(stream, part))):
                stream = self._plainer_at(stream, ids_per_step, part, position)
        return stream

    def _plainer_at(
        self, stream: Stream, ids_per_step: int | None, part: Part, position: int
    ) -> Stream:
        ids: tuple[Any, ...] = _ids_of(stream, part)
        for plain in self._plain:
            if plain == ids[position]:
                return stream
            changed = (*ids[:position], plain, *ids[position + 1 :])
            plainer = _with_ids(stream, part, changed)
            if self._holds(plainer, ids_per_step):
                return plainer
        return stream

    def _with_defaults(self, stream: Stream, ids_per_step: int | None) -> Stream:
        for plainer in _plainer_settings(stream):
            if plainer != stream and self._holds(plainer, ids_per_step):
                return self._with_defaults(plainer, ids_per_step)
        return stream


def _plainer_settings(stream: Stream) -> Iterator[Stream]:
    """The stream with one setting as it is by default, or one stop string alone."""
    stops = stream.stops
    yield replace(stream, flags=DEFAULT_FLAGS)
    yield replace(stream, ended=True)
    yield replace(stream, stops=replace(stops, min_tokens=0))
    yield replace(stream, stops=replace(stops, keep_stop=False))
    for string in stops.strings:
        yield replace(stream, stops=replace(stops, strings=(string,)))


def _with_ids(stream: Stream, part: Part, ids: tuple[Any, ...]) -> Stream:
    return replace(stream, prompt=ids) if part == "prompt" else replace(stream, output=ids)


def _ids_of(stream: Stream, part: Part) -> tuple[Any, ...]:
    return stream.prompt if part == "prompt" else stream.output


def _with_runs_left_out(ids: tuple[Any, ...], run: int) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(ids), run):
        yield ids[:start] + ids[start + run :]
