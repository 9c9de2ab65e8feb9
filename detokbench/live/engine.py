"""The engine's process: a clock in place of a GPU, and what the engine's own CPU does around it.

It makes the workload, knows which text each id sequence should have become, and does one run after
the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import zmq

from detokbench.live.arrivals import ArrivalTimes, Batch, Requests
from detokbench.live.blast import send_canned
from detokbench.live.emission import SglangScheduler, advance_vllm
from detokbench.live.engine_run import EngineRun
from detokbench.live.plan import (
    BlastRequest,
    Bound,
    CheckRequest,
    Done,
    Loaded,
    LoadRequest,
    RunRequest,
    Topology,
)
from detokbench.live.sockets import bind_pull
from detokbench.live.texts import SentTexts
from detokbench.live.topology import route_of
from detokbench.live.worker import Control, serve
from detokbench.vocab import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.streams import Workload, build_workload


class Engine:
    """The role; holds the vocabulary and the texts through all runs."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
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

    def _run(self, request: RunRequest, control: Control) -> Done:
        requests = self._requests(request.max_tokens)
        times = ArrivalTimes(request.rate or 1.0, self._seed)
        scheduler = self._scheduler(request.interval)
        self._texts.forget()
        run = EngineRun(
            request,
            Batch(request.batch, requests, request.arrival, times),
            advance_vllm if self._topology == "vllm" else scheduler.advance,
            route_of(self._topology, len(request.sends_to), request.front_ends),
            self._texts,
            self._context,
            self._aborts,
        )
        control.send("bound", Bound(address=""))
        try:
            done = run.go(control)
        finally:
            run.close()
        self._next_request = requests.next_number
        assert done.engine is not None
        done.engine.check_ns = scheduler.check_ns
        return done

    def _requests(self, max_tokens: int) -> Requests:
        """Numbered on from the run before."""
        prompts, outputs = self._workload.prompts, self._workload.outputs
        return Requests(prompts, outputs, max_tokens, self._seed, self._next_request)

    def _scheduler(self, interval: int) -> SglangScheduler:
        vocabulary = self._vocabulary
        return SglangScheduler(self._stop, interval, vocabulary.encode, vocabulary.tokenizer.decode)


def _make_workload(request: LoadRequest, vocabulary: Vocabulary) -> Workload:
    """Make it, and write the file that the other processes read."""
    assert request.scenario is not None
    scenario = msgspec.structs.replace(
        request.scenario, batches=[request.rows], admit_prompt_lens=[1]
    )
    workload = build_workload(
        vocabulary, scenario, Path(request.text_folder), request.seed, request.output_len
    )
    Path(request.workload_file).write_bytes(msgspec.msgpack.encode(workload))
    return workload


if __name__ == "__main__":
    serve(Engine())
