"""Our engine behind vLLM's front end: a process that speaks its protocol, a clock for a GPU.

``python -m detokbench.live.engines.vllm_engine PLAN`` with an EnginePlan as JSON. It never imports
vLLM. Requests are taken while a step is waited for, and begin with that step.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import zmq

from detokbench.errors import DetokbenchError
from detokbench.live.engines.control import ControlSocket, has_message
from detokbench.live.engines.emission_times import EmissionTimes
from detokbench.live.engines.engine_plan import (
    Agreed,
    AskSample,
    AskSteps,
    AskStreams,
    EngineRequest,
    EngineSample,
    Pace,
    StartedStreams,
    Stop,
)
from detokbench.live.engines.pacer import Pacer
from detokbench.live.engines.vllm_batch import Batch
from detokbench.live.engines.vllm_handshake import EngineFacts, connect, shake_hands
from detokbench.live.engines.vllm_messages import (
    Abort,
    Add,
    Utility,
    decode_request,
    no_stats,
    stats_part,
    step_message,
    utility_message,
)
from detokbench.live.engines.vllm_outputs import Outputs
from detokbench.live.engines.vllm_versions import Layout
from detokbench.live.schedule import now_ns, wake_sharply

DEFAULT_STEP_NS = 20_000_000
# Answers to what front ends ask of an engine; the rest are actions that ours has nothing to do for.
_ANSWERS: dict[str, Any] = {
    "get_supported_tasks": ["generate"],
    "is_sleeping": False,
    "is_scheduler_paused": False,
    "reset_prefix_cache": True,
    "list_loras": [],
    "wake_up": True,
}
_ACTIONS = {
    "reset_mm_cache", "reset_encoder_cache", "profile", "get_weight_version",
    "pause_scheduler", "resume_scheduler", "sleep", "execute_dummy_batch",
}  # fmt: skip


class EnginePlan(msgspec.Struct):
    """What the process is started with.

    handshake: address of the front end's handshake socket
    control: address of the control channel, ours to bind
    workload_file: see ``front_end.Launch``
    """

    handshake: str
    control: str
    workload_file: str
    layout: Layout
    facts: EngineFacts
    log_stats: bool = True
    t_step_ns: int = DEFAULT_STEP_NS


class Engine:
    """Sockets, batch and clock."""

    def __init__(self, plan: EnginePlan) -> None:
        """Binds the control channel, and waits for the front end's handshake."""
        self._layout = plan.layout
        self._log_stats = plan.log_stats
        outputs = Outputs.read(Path(plan.workload_file))
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._control = ControlSocket(self._context, plan.control)
        self._parent = os.getppid()
        addresses = shake_hands(self._context, plan.handshake, self._orphaned)
        self._inputs, self._outputs = connect(self._context, addresses, plan.facts)
        self._max_streams = plan.facts.max_num_seqs
        self._batch = Batch(outputs, len(self._outputs), self._max_streams, plan.log_stats)
        self._descriptors = [
            int(s.getsockopt(zmq.FD)) for s in (*self._inputs, self._control.socket)
        ]
        self._times = EmissionTimes()
        self._pacer = Pacer(plan.t_step_ns)
        self._stopping = False

    def run(self) -> None:
        """Step after step until told to stop."""
        wake_sharply()
        gc.collect()
        gc.disable()  # a step must not wait for a collection; nothing here makes cycles
        while not self._stopping and not self._orphaned():
            self._listen()
            step = self._pacer.steps
            self._pacer.wait()
            self._batch.admit(step, time.monotonic())
            messages = self._encode(step)
            self._times.add(now_ns())
            for client, message in messages:
                self._outputs[client].send(message)
            self._batch.end(step)
        self._context.destroy(linger=1000)

    def _orphaned(self) -> bool:
        """Whether the supervisor is gone without having ended us."""
        return os.getppid() != self._parent

    def _listen(self) -> None:
        """Take what comes until the next step is due; at least look once.

        One wake a step, sharp to the microsecond: a poll of ZMQ's counts in ms. The descriptor of
        a socket only tells that something has changed, so its state is asked before each wait.
        """
        while True:
            for socket in self._inputs:
                while has_message(socket):
                    self._take(socket.recv_multipart())
            self._control.answer(self._answer)
            left = self._pacer.next_due - now_ns()
            if left <= 0 or self._stopping:
                return
            select.select(self._descriptors, [], [], left * 1e-9)

    def _encode(self, step: int) -> list[tuple[int, bytes]]:
        """This step's message for each front end that has rows; the first carries statistics."""
        messages = []
        stats = no_stats()
        if self._log_stats and self._batch.running:
            running = self._batch.running
            stats = stats_part(running, self._batch.waiting, step, running / self._max_streams)
        for client in range(len(self._outputs)):
            rows = self._batch.rows(client)
            if rows:
                messages.append((client, step_message(rows, stats, time.monotonic())))
                stats = no_stats()
        return messages

    def _take(self, frames: list[bytes]) -> None:
        match decode_request(frames, self._layout):
            case Add() as request:
                if not 0 <= request.client < len(self._outputs):
                    raise DetokbenchError(f"vLLM names an API server {request.client} not there")
                self._batch.add(request, time.monotonic())
            case Abort(request_ids):
                self._batch.abort(request_ids)
            case Utility() as call:
                self._outputs[call.client].send(_utility_answer(call))

    def _answer(self, request: EngineRequest) -> msgspec.Struct:
        match request:
            case Pace(t_step_ns, interval):
                if interval != 1:
                    raise DetokbenchError("vLLM's front end has the interval: --stream-interval")
                self._pacer.change(t_step_ns)
            case AskSample():
                return self._sample()
            case AskSteps(since):
                return self._times.since(since)
            case AskStreams():
                return StartedStreams(self._batch.take_started())
            case Stop():
                self._stopping = True
        return Agreed()

    def _sample(self) -> EngineSample:
        return EngineSample(
            at_ns=now_ns(),
            steps=self._pacer.steps,
            late_steps=self._pacer.late_steps,
            worst_ns=self._pacer.take_worst_ns(),
            ids=self._batch.ids,
            rows=self._batch.ids,
            running=self._batch.running,
            waiting=self._batch.waiting,
            cpu_ns=time.process_time_ns(),
            first_step=self._times.first,
            finished=self._batch.finished,
            aborted=self._batch.aborted,
        )


def _utility_answer(call: Utility) -> bytes:
    known = call.method in _ANSWERS or call.method in _ACTIONS
    failure = "" if known else f"an engine without a model cannot {call.method}"
    return utility_message(call.call_id, _ANSWERS.get(call.method), time.monotonic(), failure)


def main() -> int:
    """Entry point of the process; an error is one line on stderr and exit code 5."""
    try:
        Engine(msgspec.json.decode(sys.argv[1], type=EnginePlan)).run()
    except (DetokbenchError, zmq.ZMQError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
