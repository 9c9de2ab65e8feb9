"""The engine's process: a clock in place of a GPU, and what the engine's own CPU does around it.

A step emits the ids of all running requests at its time. In the sglang topology the scheduler's
stop checks come before the ids are handed on, in this process and on its critical path.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import zmq

from detokbench.live.arrivals import ArrivalTimes, Batch, Requests
from detokbench.live.blast import send_canned
from detokbench.live.counting import SAMPLE_S, Counters
from detokbench.live.emission import Advance, SglangScheduler, advance_vllm, close_all
from detokbench.live.messages import Announced, Encoder, RowOutput, StepOutput
from detokbench.live.plan import (
    BlastRequest,
    Bound,
    CheckRequest,
    Done,
    EngineFacts,
    Loaded,
    LoadRequest,
    RunRequest,
    Topology,
)
from detokbench.live.schedule import Schedule, now_ns, wake_sharply
from detokbench.live.sockets import bind_pull, connect_push
from detokbench.live.texts import SentTexts
from detokbench.live.worker import Control, serve
from detokbench.vocab import load_vocabulary
from detokbench.workload.streams import Workload, build_workload

Route = Callable[[int], int]
"""Request → which of the next processes gets its rows."""


class Engine:
    """The role; holds the vocabulary and the texts through all runs."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
        assert request.scenario is not None
        self._topology: Topology = request.topology
        self._seed = request.seed
        self._stop = tuple(request.stop)
        self._vocabulary = load_vocabulary(request.vocabulary, request.trust_remote_code)
        self._workload = _make_workload(request, self._vocabulary)
        self._next_request = 0
        self._texts = SentTexts(self._vocabulary, self._workload, self._stop)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        folder = str(Path(request.workload_file).parent)
        self._aborts, loaded.abort_address = bind_pull(self._context, folder, "aborts")
        loaded.vocabulary = dict(self._vocabulary.facts)

    def do(self, request: Any, control: Control) -> msgspec.Struct:
        match request:
            case RunRequest():
                return self._run(request, control)
            case CheckRequest():
                return self._texts.check(request.texts)
            case BlastRequest():
                return send_canned(request, control)
        raise TypeError(f"an engine does not know {type(request).__name__}")

    def _scheduler(self, interval: int) -> SglangScheduler:
        vocabulary = self._vocabulary
        return SglangScheduler(self._stop, interval, vocabulary.encode, vocabulary.tokenizer.decode)

    def _run(self, request: RunRequest, control: Control) -> Done:
        requests = Requests(
            self._workload.prompts,
            self._workload.outputs,
            request.max_tokens,
            self._seed,
            self._next_request,
        )
        batch = Batch(
            request.batch, requests, request.arrival, ArrivalTimes(request.rate or 1.0, self._seed)
        )
        scheduler = self._scheduler(request.interval)
        advance = advance_vllm if self._topology == "vllm" else scheduler.advance
        self._texts.forget()
        route = _route(self._topology, request)
        run = _Run(request, batch, advance, route, self._context, self._aborts)
        control.send("bound", Bound(address=""))
        try:
            done = run.go(control, self._texts)
        finally:
            run.close()
        self._next_request = requests.next_number
        assert done.engine is not None
        done.engine.check_ns = scheduler.check_ns
        return done


def _make_workload(request: LoadRequest, vocabulary: Any) -> Workload:
    assert request.scenario is not None
    scenario = msgspec.structs.replace(
        request.scenario, batches=[request.rows], admit_prompt_lens=[1]
    )
    workload = build_workload(
        vocabulary, scenario, Path(request.text_folder), request.seed, request.output_len
    )
    Path(request.workload_file).write_bytes(msgspec.msgpack.encode(workload))
    return workload


def _route(topology: Topology, request: RunRequest) -> Route:
    """vLLM deals requests to front ends in turn. SGLang picks a detokenizer by hash.

    As its ``MultiDetokenizerRouter`` (0.5.23): by the hash of the front end where there are
    several, else of the request. Its router is a process of its own; here the engine does it.
    """
    targets, front_ends = len(request.sends_to), request.front_ends
    if targets == 1:
        return lambda number: 0
    if topology == "vllm":
        return lambda number: number % targets
    if front_ends > 1:
        return lambda number: zlib.crc32(f"front-end-{number % front_ends}".encode()) % targets
    return lambda number: zlib.crc32(f"request-{number}".encode()) % targets


class _Run:
    """One run of the engine."""

    def __init__(
        self,
        request: RunRequest,
        batch: Batch,
        advance: Advance,
        route: Route,
        context: zmq.Context[zmq.Socket[bytes]],
        aborts: zmq.Socket[bytes],
    ) -> None:
        self._request = request
        self._batch = batch
        self._advance = advance
        self._route = route
        self._sockets = [connect_push(context, address) for address in request.sends_to]
        to = request.announce_to
        self._announcing = None if to is None else connect_push(context, to)
        self._aborts = aborts
        self._encode = Encoder().encode
        self._counters = Counters()
        self._finished = self._aborted = 0

    def close(self) -> None:
        for socket in self._sockets:
            socket.close()
        if self._announcing is not None:
            self._announcing.close()

    def go(self, control: Control, texts: SentTexts) -> Done:
        wake_sharply()
        first = self._counters.sample()
        self._announce(self._batch.begin())
        if self._announcing is not None:
            time.sleep(0.3 + 0.003 * self._request.batch)  # clients open their streams
        schedule = Schedule(self._request.t_step_ns)
        end = schedule.start + round(self._request.duration_s * 1e9)
        next_sample = schedule.start
        while not control.stopping and schedule.due(schedule.steps) < end and now_ns() < end:
            emitted_ns = schedule.wait()
            self._step(schedule.steps - 1, emitted_ns, texts)
            self._take_aborts(texts)
            self._announce(self._batch.refill(now_ns() - schedule.start))
            if emitted_ns >= next_sample:
                control.send("sample", self._counters.sample())
                next_sample = emitted_ns + round(SAMPLE_S * 1e9)
        ended = now_ns()
        self._close(schedule.steps, texts)
        facts = EngineFacts(
            start_ns=schedule.start,
            end_ns=ended,
            steps=schedule.steps,
            late_steps=schedule.late_steps,
            drift_ns=schedule.drift_ns,
            worst_ns=schedule.worst_ns,
            requests=self._batch.arrived,
            finished=self._finished,
            aborted=self._aborted,
        )
        return Done(first=first, last=self._counters.sample(), engine=facts)

    def _step(self, step: int, emitted_ns: int, texts: SentTexts) -> None:
        emitted = self._advance(self._batch.running)
        if emitted.ended:
            self._finished += len(emitted.ended)
            texts.remember(emitted.ended, self._request.batch)
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

    def _take_aborts(self, texts: SentTexts) -> None:
        numbers: set[int] = set()
        while self._aborts.poll(0):
            numbers.update(msgspec.msgpack.decode(self._aborts.recv(), type=list[int]))
        if numbers:
            dropped = [r for r in self._batch.running if r.number in numbers]
            texts.remember(dropped, self._request.batch)
            self._aborted += self._batch.drop(numbers)

    def _close(self, step: int, texts: SentTexts) -> None:
        """End all that still runs, so that every stream is whole."""
        self._take_aborts(texts)
        running = self._batch.running
        rows = close_all(running)
        texts.remember(running, self._request.batch)
        self._send(step, now_ns(), rows, last=True)
        self._announce([], last=True)


if __name__ == "__main__":
    serve(Engine())
