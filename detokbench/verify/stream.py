"""One stream and what a path makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from detokbench.paths.protocol import DetokPath, Flags, LooksForStops, PathClass
from detokbench.paths.row import PathRow
from detokbench.stops import open_stop_stream
from detokbench.stops.request import StopFinish, StopRequest, StopStream
from detokbench.vocab.vocabulary import Vocabulary

ALL = None
"""As a number of ids a step: all of them in one."""
DEFAULT_FLAGS = Flags()
NO_STOPS = StopRequest()
STEP_SIZES: tuple[int | None, ...] = (1, 2, 3, 4, 7, ALL)


@dataclass(frozen=True, slots=True)
class Stream:
    """A prompt and the ids that a model answers with, which may not be ids at all."""

    prompt: tuple[Any, ...]
    output: tuple[Any, ...]
    flags: Flags = DEFAULT_FLAGS
    stops: StopRequest = NO_STOPS
    ended: bool = True
    """Whether the stream ends after its output, so that what is held is due."""
    origin: str = field(default="", compare=False)

    @property
    def has_stops(self) -> bool:
        return bool(self.stops.strings or self.stops.regexes or self.stops.stop_ids)

    def steps(self, ids_per_step: int | None) -> Iterator[list[Any]]:
        """The ids of each step."""
        size = ids_per_step or max(len(self.output), 1)
        for start in range(0, len(self.output), size):
            yield list(self.output[start : start + size])


@dataclass(slots=True)
class Observation:
    """What came of a stream: the text of each step, and of the end; or what it raised."""

    deltas: list[str] = field(default_factory=list)
    ending: str = ""
    error: str = ""
    finish: StopFinish | None = None
    counted: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All that was sent."""
        return "".join(self.deltas) + self.ending


class Runner:
    """One path on one vocabulary, kept from stream to stream until it raises."""

    def __init__(self, path_class: PathClass, vocabulary: Vocabulary) -> None:
        self.path_class = path_class
        self._vocabulary = vocabulary
        self._path: DetokPath | None = None
        self.steps = 0
        """Steps taken so far."""

    @property
    def name(self) -> str:
        return self.path_class.name

    def can_judge(self, stream: Stream) -> bool:
        """Whether the path has a way to look for the stops that the stream asks for."""
        style = self.path_class.stops
        return (
            not stream.has_stops
            or style == "tokens"
            or (style is not None and not stream.stops.regexes)
        )

    def fresh(self) -> Runner:
        """The same, with a path that has served no stream yet."""
        return Runner(self.path_class, self._vocabulary)

    def run(self, stream: Stream, ids_per_step: int | None) -> Observation:
        """Stream it. What the path raises is noted, never passed on, but for Ctrl-C.

        A panic in Rust and ``SystemExit`` are no Exceptions, and noted all the same.
        """
        seen = Observation()
        path = self._path
        before: dict[str, int] = {}
        try:
            path = path or self.path_class(self._vocabulary)
            before = counters(path)
            self._follow(stream, ids_per_step, path, seen)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            seen.error = one_line(error)
            self._path = None
        else:
            self._path = path
        if path is not None:
            after = counters(path)
            seen.counted = {
                name: after[name] - before.get(name, 0)
                for name in after
                if after[name] != before.get(name, 0)
            }
        return seen

    def _follow(
        self, stream: Stream, ids_per_step: int | None, path: DetokPath, seen: Observation
    ) -> None:
        if stream.has_stops and isinstance(path, LooksForStops):
            prompt = list(stream.prompt)
            guarded = path.open_with_stops(prompt, stream.flags, stream.stops)
            self._follow_with_stops(stream, ids_per_step, guarded, None, seen)
            return
        row = PathRow(path, list(stream.prompt), stream.flags)
        if stream.has_stops:
            guarded = self._guard(stream.stops, row)
            self._follow_with_stops(stream, ids_per_step, guarded, row, seen)
            return
        for ids in stream.steps(ids_per_step):
            seen.deltas.append(row.step(ids))
        self.steps += len(seen.deltas)
        seen.ending = row.end() if stream.ended else ""
        if not stream.ended:
            row.end()

    def _guard(self, stops: StopRequest, row: PathRow) -> StopStream:
        """The row with the machinery of its path's style around it."""
        style = self.path_class.stops
        assert style is not None
        vocabulary = self._vocabulary
        return open_stop_stream(
            style,
            stops,
            row,
            vocabulary.encode,
            lambda ids: vocabulary.decode(ids, skip_special_tokens=False),
        )

    def _follow_with_stops(
        self,
        stream: Stream,
        ids_per_step: int | None,
        guarded: StopStream,
        row: PathRow | None,
        seen: Observation,
    ) -> None:
        """``row`` is to be closed where the stream is left open; a path's own stops have none."""
        for ids in stream.steps(ids_per_step):
            seen.deltas.append(guarded.step(ids))
            if guarded.finish is not None:
                break
        self.steps += len(seen.deltas)
        if stream.ended or guarded.finish is not None:
            seen.ending = guarded.end()
        elif row is not None:
            row.end()
        seen.finish = guarded.finish


def counters(path: DetokPath) -> dict[str, int]:
    """What a path counts of itself: its public whole numbers (``bad_ids`` and the like)."""
    counted = {}
    for name in dir(path):
        if name.startswith("_"):
            continue
        try:
            value = getattr(path, name)
        except Exception:
            continue  # a property that fails counts nothing
        if isinstance(value, int) and not isinstance(value, bool):
            counted[name] = value
    return counted


def one_line(error: BaseException) -> str:
    """An exception as ``TypeError: what it says``, cut to a line."""
    try:
        words = " ".join(str(error).split())
    except Exception:
        words = "(it cannot say what)"
    words = words.encode("utf-8", "backslashreplace").decode()  # as JSON can hold it
    said = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return said if len(said) <= 160 else said[:159] + "…"


def run_rows(
    path: DetokPath, streams: Sequence[Stream], ids_per_step: int | None, order: Sequence[int]
) -> list[str]:
    """The text of each stream, all in one batch; ``order`` is that of the rows in every step."""
    rows = path.open([list(s.prompt) for s in streams], [s.flags for s in streams])
    pending = [list(stream.steps(ids_per_step)) for stream in streams]
    texts = [""] * len(streams)
    for step in range(max(map(len, pending))):
        live = [i for i in order if step < len(pending[i])]
        deltas = path.step([rows[i] for i in live], [pending[i][step] for i in live])
        for i, delta in zip(live, deltas, strict=True):
            texts[i] += delta
    return [text + path.end(row) for text, row in zip(texts, rows, strict=True)]
