"""Runs a stream through a path and notes every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from detokbench.errors import usage_error
from detokbench.paths.protocol import DetokPath, PathClass
from detokbench.paths.registry import load_path_class, path_names
from detokbench.paths.row import PathRow
from detokbench.paths.view import RowView, Viewable
from detokbench.stops import open_stop_stream
from detokbench.stops.request import StopFinish, StopStream, TextRow
from detokbench.trace.compare import END, compare
from detokbench.trace.steps import OPEN, Outcome, Trace, TraceStep
from detokbench.verify.stream import Stream, counters, one_line
from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.reference import piece_of
from detokbench.vocab.special_texts import warnings_about_stops
from detokbench.vocab.vocabulary import Vocabulary


def trace_stream(
    path_class: PathClass, vocabulary: Vocabulary, stream: Stream, ids_per_step: int = 1
) -> Trace:
    """Stream it; what the path raises is the outcome of its last step.

    Raises a usage error where the path does not apply to the vocabulary, or has no stops and the
    stream does.
    """
    reason = path_class.why_not(vocabulary)
    if reason is not None:
        raise usage_error(f"{path_class.name} does not apply to {vocabulary.name}: {reason}")
    if stream.has_stops and path_class.stops is None:
        raise usage_error(
            f"no stops belong to {path_class.name}; paths with stops are: {paths_with_stops()}"
        )
    follower = _Follower(path_class, vocabulary, stream)
    steps = list(follower.follow(ids_per_step))
    came = [(step.label, step.delta) for step in steps]
    return Trace(
        path=path_class.name,
        whose=path_class.whose,
        vocabulary=vocabulary.name,
        stream=stream,
        ids_per_step=ids_per_step,
        steps=steps,
        finish=follower.finish,
        comparison=compare(came, stream, ids_per_step, vocabulary),
        warnings=warnings_about_stops(
            vocabulary, stream.stops.strings, stream.flags.skip_special_tokens
        ),
    )


def paths_with_stops() -> str:
    """Their names, with commas."""
    return ", ".join(name for name in path_names() if load_path_class(name).stops is not None)


class _WatchedRow:
    """A row that notes whether the machinery around it used it in a step, and what it gave."""

    def __init__(self, row: PathRow) -> None:
        self.number = row.number
        self._row = row
        self.forget()

    def forget(self) -> None:
        self.was_used, self.gave = False, ""
        self.took: list[Any] = []

    def step(self, new_ids: list[int]) -> str:
        self.took += new_ids
        return self._note(self._row.step(new_ids))

    def end(self) -> str:
        return self._note(self._row.end())

    def _note(self, text: str) -> str:
        self.was_used = True
        self.gave += text
        return text


class _Follower:
    """One stream on its way; ends with the first error."""

    def __init__(self, path_class: PathClass, vocabulary: Vocabulary, stream: Stream) -> None:
        self._path_class = path_class
        self._vocabulary = vocabulary
        self._stream = stream
        self._path: DetokPath
        self._row: _WatchedRow
        self._stops: StopStream | None = None

    @property
    def finish(self) -> StopFinish | None:
        return None if self._stops is None else self._stops.finish

    def follow(self, ids_per_step: int) -> Iterator[TraceStep]:
        _, error = _attempt(self._open)
        if error:
            yield TraceStep(OPEN, "error", error=error)
            return
        target = self._target
        for number, ids in enumerate(self._stream.steps(ids_per_step), 1):
            step = self._step(str(number), ids, partial(target.step, list(ids)))
            yield step
            if step.error or self.finish is not None:
                return
        if self._stream.ended:
            yield self._step(END, [], target.end)

    @property
    def _target(self) -> TextRow:
        return self._row if self._stops is None else self._stops

    def _open(self) -> str:
        stream = self._stream
        self._path = self._path_class(self._vocabulary)
        row = PathRow(self._path, list(stream.prompt), stream.flags)
        self._row = _WatchedRow(row)
        if stream.has_stops and self._path_class.stops is not None:
            decode = self._vocabulary.decode
            self._stops = open_stop_stream(
                self._path_class.stops,
                stream.stops,
                self._row,
                self._vocabulary.encode,
                lambda ids: decode(ids, skip_special_tokens=False),
            )
        return ""

    def _step(self, label: str, ids: list[Any], run: Callable[[], str]) -> TraceStep:
        before = self._look()
        counted_before = counters(self._path)
        self._row.forget()
        delta, error = _attempt(run)
        counted = {
            name: value - counted_before.get(name, 0)
            for name, value in counters(self._path).items()
            if value != counted_before.get(name, 0)
        }
        after = None if error or label == END or self.finish is not None else self._look()
        stops = self._stops
        stop_held = "" if stops is None or after is None else _attempt(lambda: stops.held)[0]
        return TraceStep(
            label=label,
            outcome="error" if error else self._outcome(label, before, after),
            ids=tuple(ids),
            pieces=self._pieces(ids),
            before=before,
            after=after,
            delta=delta,
            stop_held=stop_held,
            counted=counted,
            error=error,
            handed=tuple(self._row.took),
        )

    def _outcome(self, label: str, before: RowView | None, after: RowView | None) -> Outcome:
        row = self._row
        if self.finish is not None:
            return "stop"
        if label == END:
            return "lost" if before is not None and before.held and not row.gave else "end"
        if not row.was_used:
            return "wait"
        if after is not None and after.held:
            return "part" if row.gave else "hold"
        return "commit" if row.gave else "–"

    def _look(self) -> RowView | None:
        path: object = self._path
        if not isinstance(path, Viewable):
            return None
        try:
            return path.look(self._row.number)
        except Exception:
            return None  # the row is gone, or cannot be decoded any more: the step will show it

    def _pieces(self, ids: Sequence[Any]) -> tuple[bytes | None, ...] | None:
        try:
            table = self._vocabulary.id_bytes
        except UnsupportedFamilyError:
            return None
        return tuple(piece_of(table, token_id) for token_id in ids)


def _attempt(run: Callable[[], str]) -> tuple[str, str]:
    """What ``run`` gives, or what it raises, in a line; a panic in Rust and SystemExit too."""
    try:
        return run(), ""
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        return "", one_line(error)
