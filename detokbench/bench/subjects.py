"""What can be timed: a path's steps, its bare tokenizer calls, the admission of a request.

A subject runs ``n`` repetitions against the clock and says how many units of work were in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol

from detokbench.bench.loops import time_calls, time_steps, time_stream_steps
from detokbench.bench.recording import STREAM_STEP, CallLog, RecordingVocabulary
from detokbench.paths.protocol import DetokPath, Flags, PathClass
from detokbench.vocab.vocabulary import Vocabulary

CALLS_TO_RECORD = 1024
# Until it has first sent something, a stream decodes its whole prompt at every step.
_SETTLED_STEPS = 8


class Timing(NamedTuple):
    """Nanoseconds of one sample, and the units of work in it."""

    ns: int
    units: float


class Subject(Protocol):
    """Something that can be run ``n`` times against the clock, ``n`` up to ``limit``."""

    limit: int

    def run(self, n: int) -> Timing: ...


class PathSteps:
    """Steps of a path over a batch. Rows are opened anew when a stream ends.

    A unit is a token, unless ``units_per_step`` says how many units a step of the path is.

    Opening rows and their first token are left out of the times: prompts make them dear, and
    they are measured on their own.
    """

    def __init__(
        self,
        path: DetokPath,
        prompts: Sequence[list[int]],
        steps: Sequence[list[list[int]]],
        flags: Flags,
        units_per_step: float | None = None,
    ) -> None:
        self._path = path
        self._prompts = prompts
        self._steps = steps
        self._flags = [flags] * len(prompts)
        self._rows: list[int] = []
        self._position = 0
        self.limit = len(steps) - 1
        self._units_per_step = units_per_step or sum(map(len, steps[0]))
        self._rewind()

    def _rewind(self) -> None:
        for row in self._rows:
            self._path.end(row)
        self._rows = self._path.open(self._prompts, self._flags)
        self._path.step(self._rows, self._steps[0])
        self._position = 1

    def run(self, n: int) -> Timing:
        if self._position + n > len(self._steps):
            self._rewind()
        batches = self._steps[self._position : self._position + n]
        self._position += n
        return Timing(time_steps(self._path.step, self._rows, batches), n * self._units_per_step)


class BareCalls:
    """The tokenizer calls of a path, replayed without the path; a unit is one row decoded."""

    def __init__(self, log: CallLog) -> None:
        first = log.calls[0]
        self._function = first.function
        self._flags = first.flags
        self._calls = [(call.argument, call.rows) for call in log.calls]
        self._position = 0
        self.limit = len(self._calls)

    def run(self, n: int) -> Timing:
        if self._position + n > len(self._calls):
            self._position = 0
        taken = self._calls[self._position : self._position + n]
        self._position += n
        arguments = [argument for argument, _ in taken]
        return Timing(
            time_calls(self._function, arguments, self._flags), sum(rows for _, rows in taken)
        )


class StreamCalls:
    """``DecodeStream.step`` on its own, one stream a row; a unit is one call.

    Few enough calls that going round them keeps the caches warm, as with the other bare calls; and
    not a stream's first ones, which are admission.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        prompts: Sequence[list[int]],
        steps: Sequence[list[list[int]]],
        flags: Flags,
    ) -> None:
        self._vocabulary = vocabulary
        self._prompts = prompts
        start = min(_SETTLED_STEPS, len(steps) // 2)
        self._before = _dealt(steps[:start])
        self._ids = _dealt(steps[start:])[:CALLS_TO_RECORD]
        self._skip = flags.skip_special_tokens
        self._pairs: list[tuple[Any, int]] = []
        self._position = 0
        self.limit = len(self._ids)
        self._rewind()

    def _rewind(self) -> None:
        streams = [self._vocabulary.decode_stream(p, self._skip) for p in self._prompts]
        steps = [stream.step for stream in streams]
        time_stream_steps(
            [(steps[row], token_id) for row, token_id in self._before], self._vocabulary.rust
        )
        self._pairs = [(steps[row], token_id) for row, token_id in self._ids]
        self._position = 0

    def run(self, n: int) -> Timing:
        if self._position + n > len(self._pairs):
            self._rewind()
        taken = self._pairs[self._position : self._position + n]
        self._position += n
        return Timing(time_stream_steps(taken, self._vocabulary.rust), n)


def _dealt(steps: Sequence[list[list[int]]]) -> list[tuple[int, int]]:
    """``(row, token id)`` in the order in which a batch gets them."""
    return [(row, i) for step in steps for row, ids in enumerate(step) for i in ids]


class Admission:
    """Admitting requests, or the first token after it; a unit is one request."""

    def __init__(
        self,
        path: DetokPath,
        prompts: Sequence[list[int]],
        first_ids: Sequence[int],
        flags: Flags,
        first_token: bool,
    ) -> None:
        self._path = path
        self._prompts = prompts
        self._first = [[token_id] for token_id in first_ids]
        self._flags = [flags] * len(prompts)
        self._first_token = first_token
        self.limit = len(prompts)

    def run(self, n: int) -> Timing:
        prompts, first, flags = self._prompts[:n], self._first[:n], self._flags[:n]
        start = perf_counter_ns()
        rows = self._path.open(prompts, flags)
        opened = perf_counter_ns()
        self._path.step(rows, first)
        end = perf_counter_ns()
        for row in rows:
            self._path.end(row)
        return Timing(end - opened if self._first_token else opened - start, n)


class CallCount(NamedTuple):
    """What a path asks of the tokenizer, and the calls themselves."""

    name: str | None
    calls_per_token: float
    lookups_per_token: float
    log: CallLog


def count_calls(
    path_class: PathClass,
    vocabulary: Vocabulary,
    prompts: Sequence[list[int]],
    steps: Sequence[list[list[int]]],
    flags: Flags,
) -> CallCount:
    """Run a path on a recording vocabulary and count its decodes and id look-ups a token."""
    recording = RecordingVocabulary(vocabulary)
    path = path_class(recording)
    rows = path.open(prompts, [flags] * len(prompts))
    path.step(rows, steps[0])
    recording.log.clear()
    tokens_per_step = sum(map(len, steps[0]))
    taken = steps[1 : 2 + CALLS_TO_RECORD // (2 * tokens_per_step)]
    for ids in taken:
        path.step(rows, ids)
    tokens = len(taken) * tokens_per_step
    log = recording.log
    name = log.calls[0].name if log.calls else None
    return CallCount(name, log.decodes / tokens, log.lookups / tokens, log)


def bare_calls(
    count: CallCount,
    vocabulary: Vocabulary,
    prompts: Sequence[list[int]],
    steps: Sequence[list[list[int]]],
    flags: Flags,
) -> Subject | None:
    """The subject that times a path's calls alone; None for a path that makes none."""
    if count.name is None:
        return None
    if count.name == STREAM_STEP:
        return StreamCalls(vocabulary, prompts, steps, flags)
    return BareCalls(count.log)
