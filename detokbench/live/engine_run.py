"""One run of the engine: a step at each of its times, sent on to the processes that decode.

A step emits the ids of all running requests at its time. In the sglang topology the scheduler's
stop checks come before the ids are handed on, in this process and on its critical path.
"""

from __future__ import annotations

import time

import msgspec
import zmq

from detokbench.live.arrivals import Batch
from detokbench.live.counting import SAMPLE_S, Counters
from detokbench.live.emission import Advance, close_all
from detokbench.live.messages import Announced, Encoder, RowOutput, StepOutput
from detokbench.live.plan import Done, EngineFacts, RunRequest
from detokbench.live.schedule import Schedule, now_ns, wake_sharply
from detokbench.live.sockets import connect_push
from detokbench.live.texts import SentTexts
from detokbench.live.topology import Route
from detokbench.live.worker import Control


class EngineRun:
    """The run: its batch, its sockets, what it counts."""

    def __init__(
        self,
        request: RunRequest,
        batch: Batch,
        advance: Advance,
        route: Route,
        texts: SentTexts,
        context: zmq.Context[zmq.Socket[bytes]],
        aborts: zmq.Socket[bytes],
    ) -> None:
        self._request = request
        self._batch = batch
        self._advance = advance
        self._route = route
        self._texts = texts
        self._sockets = [connect_push(context, address) for address in request.sends_to]
        to = request.announce_to
        self._announcing = None if to is None else connect_push(context, to)
        self._aborts = aborts
        self._encode = Encoder().encode
        self._counters = Counters()
        self._finished = self._aborted = 0

    def close(self) -> None:
        """Close what was opened for this run."""
        for socket in self._sockets:
            socket.close()
        if self._announcing is not None:
            self._announcing.close()

    def go(self, control: Control) -> Done:
        """Step until the time is over or the run is to stop, then end every stream."""
        wake_sharply()
        first = self._counters.sample()
        self._announce(self._batch.begin())
        if self._announcing is not None:
            time.sleep(0.3 + 0.003 * self._request.batch)  # clients open their streams
        schedule = Schedule(self._request.t_step_ns)
        self._follow(schedule, control)
        ended = now_ns()
        self._end_streams(schedule.steps)
        facts = self._facts(schedule, ended)
        return Done(first=first, last=self._counters.sample(), engine=facts)

    def _follow(self, schedule: Schedule, control: Control) -> None:
        end = schedule.start + round(self._request.duration_s * 1e9)
        next_sample = schedule.start
        while not control.stopping and schedule.due(schedule.steps) < end and now_ns() < end:
            emitted_ns = schedule.wait()
            self._step(schedule.steps - 1, emitted_ns)
            self._take_aborts()
            self._announce(self._batch.refill(now_ns() - schedule.start))
            if emitted_ns >= next_sample:
                control.send("sample", self._counters.sample())
                next_sample = emitted_ns + round(SAMPLE_S * 1e9)

    def _facts(self, schedule: Schedule, ended_ns: int) -> EngineFacts:
        return EngineFacts(
            start_ns=schedule.start,
            end_ns=ended_ns,
            steps=schedule.steps,
            late_steps=schedule.late_steps,
            drift_ns=schedule.drift_ns,
            worst_ns=schedule.worst_ns,
            requests=self._batch.arrived,
            finished=self._finished,
            aborted=self._aborted,
        )

    def _step(self, step: int, emitted_ns: int) -> None:
        emitted = self._advance(self._batch.running)
        if emitted.ended:
            self._finished += len(emitted.ended)
            self._texts.remember(emitted.ended, self._request.batch)
        self._batch.running = emitted.going_on
        self._counters.steps = step + 1
        self._send(step, emitted_ns, emitted.rows)

    def _send(self, step: int, emitted_ns: int, rows: list[RowOutput], last: bool = False) -> None:
        self._counters.ids += sum(len(row.new_ids) for row in rows)
        if len(self._sockets) == 1:
            dealt = [rows]
        else:
            dealt = [[] for _ in self._sockets]
            for row in rows:
                dealt[self._route(row.request)].append(row)
        for socket, part in zip(self._sockets, dealt, strict=True):
            if part or last:
                socket.send(self._encode(StepOutput(step, emitted_ns, part, last)), copy=False)

    def _announce(self, numbers: list[int], last: bool = False) -> None:
        if self._announcing is not None and (numbers or last):
            self._announcing.send(self._encode(Announced(numbers, last)))

    def _take_aborts(self) -> None:
        numbers: set[int] = set()
        while self._aborts.poll(0):
            numbers.update(msgspec.msgpack.decode(self._aborts.recv(), type=list[int]))
        if numbers:
            dropped = [r for r in self._batch.running if r.number in numbers]
            self._texts.remember(dropped, self._request.batch)
            self._aborted += self._batch.drop(numbers)

    def _end_streams(self, step: int) -> None:
        """End all that still runs, so that every stream is whole."""
        self._take_aborts()
        running = self._batch.running
        rows = close_all(running)
        self._texts.remember(running, self._request.batch)
        self._send(step, now_ns(), rows, last=True)
        self._announce([], last=True)
