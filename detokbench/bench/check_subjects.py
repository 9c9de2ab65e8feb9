"""Timing the stop checks of SGLang's scheduler, whole and in parts.

The requests of a batch are in mid-stream, each at a place of its own, and begin anew when their
stream ends, as in an engine under load: at every step some of them have a chunk due. Appending ids
and deciding what is due is left out of the times; the engine does that without stops too.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from detokbench.bench.check_streams import (
    CheckedStream,
    StreamsByStops,
    finds_any,
    long_enough,
    stop_check,
)
from detokbench.bench.loops import (
    time_finish_checks,
    time_holds,
    time_prefix_checks,
    time_tail_decodes,
    time_tail_scans,
)
from detokbench.bench.plan import Cell
from detokbench.bench.subjects import Subject, Timing
from detokbench.model.stream_interval import steps_between_chunks
from detokbench.model.tail_str import chunk_is_due
from detokbench.paths.sglang_check import SchedulerCheck
from detokbench.stops.finish_check import StopCheck
from detokbench.stops.prefix_check import may_become_stop
from detokbench.vocab.vocabulary import Vocabulary

ENGINE_CHECKS = "sglang"
"""The path of a cell whose checks are those of the installed SGLang."""
_MOST_REQUESTS = 1024
# Odd and no divisor of usual intervals, so that neighbouring requests are in different phases.
_STRIDE = 37


@dataclass(slots=True)
class _Request:
    """One request of a running batch: ``step`` steps of its stream are in ``output``."""

    steps: list[list[int]]
    new_output: Callable[[], Any]
    output: Any
    step: int = 0
    sent: int = 0

    def advance(self) -> None:
        """The next ids arrive; after the last ones, those of a new request with the same text."""
        if self.step == len(self.steps):
            self.output, self.step, self.sent = self.new_output(), 0, 0
        self.output.extend(self.steps[self.step])
        self.step += 1

    def is_due(self, interval: int) -> bool:
        """Whether a chunk is to be checked; not at the last step, where the request ends."""
        last = self.step == len(self.steps)
        return not last and chunk_is_due(len(self.output), self.sent, interval)


class RunningBatch:
    """Requests in mid-stream, each one's chunks sent as its own suppressions had it."""

    def __init__(
        self,
        streams: Sequence[CheckedStream],
        ids_per_step: int,
        interval: int = 1,
        new_output: Callable[[], Any] = list,
    ) -> None:
        """``new_output`` makes what a request's ids are kept in."""
        self._interval = interval
        self._next = 0
        self.requests = [
            _Request(stream.steps(ids_per_step), new_output, new_output()) for stream in streams
        ]
        for number, (request, stream) in enumerate(zip(self.requests, streams, strict=True)):
            held = stream.held_at_steps(ids_per_step)
            for step in range(number * _STRIDE % len(request.steps)):
                request.advance()
                if request.is_due(interval) and not held[step]:
                    request.sent = len(request.output)

    def advance(self, count: int) -> Iterator[list[_Request]]:
        """The next ``count`` requests, each one step on, in slices of no more than there are."""
        while count > 0:
            end = min(self._next + count, len(self.requests))
            taken = self.requests[self._next : end]
            for request in taken:
                request.advance()
            yield taken
            count -= len(taken)
            self._next = end % len(self.requests)

    def due(self, requests: Sequence[_Request]) -> list[_Request]:
        """Those of the requests that have a chunk to send."""
        return [request for request in requests if request.is_due(self._interval)]


class Steps:
    """One kind of work at every request's step; a unit is a request and step.

    ``time_outputs`` does the work on some requests' outputs and returns nanoseconds.
    """

    limit = _MOST_REQUESTS

    def __init__(self, batch: RunningBatch, time_outputs: Callable[[list[list[int]]], int]) -> None:
        self._batch = batch
        self._time_outputs = time_outputs

    def run(self, n: int) -> Timing:
        ns = sum(
            self._time_outputs([request.output for request in requests])
            for requests in self._batch.advance(n)
        )
        return Timing(ns, n)


class Checks(Protocol):
    """Stop checks on outputs, each timed: nanoseconds, and whether chunks are suppressed."""

    new_output: Callable[[], Any]

    def finish(self, outputs: list[Any], accepted: int) -> int: ...
    def prefix(self, outputs: list[Any]) -> tuple[int, list[bool]]: ...
    def tails(self, outputs: list[Any], accepted: int) -> int: ...


class OurChecks:
    """Those of detokbench, which do what SGLang's do.

    Ids are held as SGLang's request holds them, in an array: transformers takes longer to decode a
    short one than a list.
    """

    def __init__(self, check: StopCheck) -> None:
        self._check = check
        self.new_output: Callable[[], Any] = partial(array, "q")

    def finish(self, outputs: list[Any], accepted: int) -> int:
        return time_finish_checks(self._check.find, outputs, accepted)

    def prefix(self, outputs: list[Any]) -> tuple[int, list[bool]]:
        check = self._check
        return time_prefix_checks(outputs, check.strings, check.window, check.decode)

    def tails(self, outputs: list[Any], accepted: int) -> int:
        check = self._check
        return time_tail_decodes(check.decode, check.window.ids, outputs, accepted)


class EngineChecks:
    """Those of the installed SGLang's own request."""

    def __init__(self, check: SchedulerCheck) -> None:
        self._check = check
        self.new_output: Callable[[], Any] = partial(array, "q")

    def finish(self, outputs: list[Any], accepted: int) -> int:
        ns = time_finish_checks(self._check.find, outputs, accepted)
        self._check.confirm_unfinished()
        return ns

    def prefix(self, outputs: list[Any]) -> tuple[int, list[bool]]:
        return time_holds(self._check.suppresses, outputs)

    def tails(self, outputs: list[Any], accepted: int) -> int:
        return time_finish_checks(self._check.tail, outputs, accepted)


class BothChecks:
    """The finish check of requests, then the prefix check of those of them that have a chunk due.

    A suppressed chunk stays due. A unit is a request and step; ``n`` counts as many requests as
    have one chunk among them, for a sample with less would have none or one by chance.
    """

    def __init__(
        self, batch: RunningBatch, checks: Checks, ids_per_step: int, requests_per_chunk: int
    ) -> None:
        self._batch = batch
        self._checks = checks
        self._accepted = ids_per_step
        self._requests_per_chunk = requests_per_chunk
        self.limit = max(4, _MOST_REQUESTS // requests_per_chunk)

    def run(self, n: int) -> Timing:
        count = n * self._requests_per_chunk
        return Timing(sum(map(self._check_all, self._batch.advance(count))), count)

    def _check_all(self, requests: list[_Request]) -> int:
        outputs = [request.output for request in requests]
        finish_ns = self._checks.finish(outputs, self._accepted)
        due = self._batch.due(requests)
        prefix_ns, held = self._checks.prefix([request.output for request in due])
        for request, was_held in zip(due, held, strict=True):
            if not was_held:
                request.sent = len(request.output)
        return finish_ns + prefix_ns


class Scans:
    """A scan of tails that were decoded before; a unit is one scan."""

    def __init__(self, scan: Callable[..., Any], tails: Sequence[str], *stops: Any) -> None:
        self._scan = scan
        self._tails = tails
        self._stops = stops
        self._position = 0
        self.limit = len(tails)

    def run(self, n: int) -> Timing:
        if self._position + n > len(self._tails):
            self._position = 0
        taken = self._tails[self._position : self._position + n]
        self._position += n
        return Timing(time_tail_scans(self._scan, taken, self._stops), n)


class CheckSubjects:
    """Makes the subject of each cell of ``tail-str``."""

    def __init__(self, vocabulary: Vocabulary, streams: StreamsByStops) -> None:
        self._vocabulary = vocabulary
        self._streams = streams

    def make(self, cell: Cell) -> Subject:
        """Raises a usage error where the stops end every stream at once."""
        assert cell.stops is not None
        stops, accepted = cell.stops, cell.ids_per_step or 1
        check = stop_check(stops, self._vocabulary.encode, self._vocabulary.tokenizer.decode)
        streams = long_enough(self._streams[stops], stops, accepted)
        if cell.metric == "contain":
            tails = _widened_tails(streams, check, accepted)
            return Scans(finds_any, tails, stops.strings, stops.regexes)
        if cell.metric == "prefix_scan":
            tails = [tail for stream in streams for tail in stream.tails]
            return Scans(may_become_stop, tails, stops.strings)
        checks = self._checks(cell, check)
        batch = RunningBatch(streams, accepted, cell.stream_interval or 1, checks.new_output)
        if cell.metric == "both_checks" and cell.stream_interval is not None:
            per_chunk = steps_between_chunks(cell.stream_interval, accepted)
            return BothChecks(batch, checks, accepted, per_chunk)
        return Steps(batch, _work(cell, checks, accepted))

    def _checks(self, cell: Cell, check: StopCheck) -> Checks:
        if cell.path != ENGINE_CHECKS:
            return OurChecks(check)
        return EngineChecks(SchedulerCheck(self._vocabulary, check.strings, check.regexes))


def _work(cell: Cell, checks: Checks, accepted: int) -> Callable[[list[Any]], int]:
    """What one step of a cell does with the outputs."""
    if cell.metric == "floor":
        return partial(_timed_nothing, accepted)
    if cell.metric == "decode":
        return partial(_timed, checks.tails, accepted)
    if cell.metric == "prefix_check":
        return partial(_timed_prefix, checks)
    return partial(_timed, checks.finish, accepted)


def _timed(work: Callable[[list[Any], int], int], accepted: int, outputs: list[Any]) -> int:
    return work(outputs, accepted)


def _timed_nothing(accepted: int, outputs: list[Any]) -> int:
    return time_finish_checks(lambda _output, _accepted: None, outputs, accepted)


def _timed_prefix(checks: Checks, outputs: list[Any]) -> int:
    return checks.prefix(outputs)[0]


def _widened_tails(streams: Sequence[CheckedStream], check: StopCheck, accepted: int) -> list[str]:
    """The texts that the finish check scans at each step of each stream."""
    if accepted == 1:
        return [tail for stream in streams for tail in stream.tails]
    ends = [
        stream.ids[:end]
        for stream in streams
        for end in range(accepted, len(stream.ids) + 1, accepted)
    ]
    return [check.decode(check.window.ids(output, accepted)) for output in ends]
