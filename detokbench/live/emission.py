"""What the engine hands on of one step: which rows, with which ids, ended or not.

``vllm``: every request's new id goes to the front end at every step. ``sglang``: the scheduler
first looks for stop strings, on the critical path, then hands on what is due by the stream
interval and not held back as the possible beginning of a stop (0.5.23, ``OutputStreamer.accept``
and ``Req.update_finish_state``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from detokbench.live.arrivals import Running
from detokbench.live.messages import RowOutput
from detokbench.live.schedule import now_ns
from detokbench.model.tail_str import chunk_is_due
from detokbench.stops.finish_check import FinishReason, StopCheck, find_finish
from detokbench.stops.prefix_check import suppresses_chunk
from detokbench.stops.tail_window import Decode, Encode, TailWindow


class Emitted(NamedTuple):
    """One step: the rows handed on, the requests that go on, and those that have ended."""

    rows: list[RowOutput]
    going_on: list[Running]
    ended: list[Running]


Advance = Callable[[list[Running]], Emitted]
"""One step of all running requests."""


def advance_vllm(running: list[Running]) -> Emitted:
    """One id for every request; one that has its length ends."""
    rows: list[RowOutput] = []
    going_on: list[Running] = []
    ended: list[Running] = []
    for request in running:
        position = request.position
        request.position = request.sent = position + 1
        row = RowOutput(request.number, request.ids[position : position + 1], request.prompt)
        request.prompt = None
        rows.append(row)
        if position + 1 < request.length:
            going_on.append(request)
        else:
            row.finish = "length"
            ended.append(request)
    return Emitted(rows, going_on, ended)


class SglangScheduler:
    """The scheduler's part of a step: the finish check, the prefix check, and what is due.

    ``check_ns`` adds up what the checks of all steps took.
    """

    def __init__(
        self, stop: tuple[str, ...], interval: int, encode: Encode, decode: Decode
    ) -> None:
        """``decode`` must keep special tokens, as the scheduler's does."""
        self._stop = stop
        self._interval = interval
        self._decode = decode
        self._window = TailWindow.for_stops(stop, (), encode)
        self._check = StopCheck(stop, (), self._window, decode)
        self.check_ns = 0

    def advance(self, running: list[Running]) -> Emitted:
        """One id for every request; see the module."""
        rows: list[RowOutput] = []
        going_on: list[Running] = []
        ended: list[Running] = []
        started = now_ns()
        for request in running:
            request.position += 1
            finish, matched = self._finish(request)
            if finish is None:
                going_on.append(request)
                if not self._is_due(request):
                    continue
            else:
                ended.append(request)
            rows.append(_row(request, finish, matched))
        if self._stop:
            self.check_ns += now_ns() - started
        return Emitted(rows, going_on, ended)

    def _finish(self, request: Running) -> tuple[str | None, str | None]:
        if not self._stop:
            return ("length" if request.position >= request.length else None), None
        request.output.append(request.ids[request.position - 1])
        found = find_finish(request.output, 1, request.length, self._check)
        if found is None:
            return None, None
        if found.reason is FinishReason.STOP_STRING:
            return "stop", str(found.matched)
        return "length", None

    def _is_due(self, request: Running) -> bool:
        if not chunk_is_due(request.position, request.sent, self._interval):
            return False
        return not suppresses_chunk(request.output, self._stop, self._window, self._decode)


def _row(request: Running, finish: str | None, matched: str | None) -> RowOutput:
    ids = request.ids[request.sent : request.position]
    request.sent = request.position
    row = RowOutput(request.number, ids, request.prompt, finish, matched)
    request.prompt = None
    return row


def close_all(running: list[Running]) -> list[RowOutput]:
    """The last rows of a run: all that still ran ends with the ids it had got."""
    return [_row(request, "length", None) for request in running]
