"""The vllm topology's front end: one process that receives, decodes, looks for stops and sends.

After vLLM 0.33.0: v1/engine/core_client.py (``AsyncMPClient``: a task that receives and unpacks,
and a queue), v1/engine/async_llm.py (``_run_output_handler``: slices, a turn of the loop between
two of them, aborts for what a stop string ended).
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import zmq.asyncio

from detokbench.live.calibrate import calibrate_decode, calibrate_queue
from detokbench.live.chosen_path import load_both
from detokbench.live.front_end import FrontEndRun
from detokbench.live.messages import Decoder, Encoder, StepOutput
from detokbench.live.output_processor import OutputProcessor
from detokbench.live.plan import CalibrateRequest, Cost, Done, Loaded, LoadRequest, RunRequest
from detokbench.live.row_texts import OneByOne
from detokbench.live.schedule import now_ns
from detokbench.live.sockets import connect_push
from detokbench.live.stand_in import WordPath
from detokbench.live.worker import Control, serve


class VllmFrontEnd:
    """The role."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
        self._vocabulary, self._path_class = load_both(request)
        self._path = self._path_class(self._vocabulary)
        self._stop = tuple(request.stop)
        self._workload_file = request.workload_file
        self._seed = request.seed

    def do(self, request: Any, control: Control) -> msgspec.Struct:
        match request:
            case RunRequest():
                return asyncio.run(self._run(request, control))
            case CalibrateRequest():
                return self._calibrate(request)
        raise TypeError(f"a front end does not know {type(request).__name__}")

    def _calibrate(self, request: CalibrateRequest) -> Cost:
        """One part: ``queue`` is measured around decoding, and holds it."""
        path = (WordPath if request.part == "floor" else self._path_class)(self._vocabulary)
        stop = self._stop if request.part in {"stop", "queue"} else ()
        texts = OneByOne(path, stop)
        if request.part == "queue":
            return asyncio.run(calibrate_queue(request, self._workload_file, self._seed, texts))
        return calibrate_decode(request, self._workload_file, self._seed, texts)

    async def _run(self, request: RunRequest, control: Control) -> Done:
        run = FrontEndRun(request, control)
        texts = OneByOne(self._path, self._stop)
        handler = _Handler(run, texts)
        done = await run.go(handler.work)
        done.states_left = len(texts)
        if handler.processor is not None:
            done.chunks_put = handler.processor.chunks_put
            done.dropped_ids = handler.processor.dropped_ids
        done.aborts = handler.aborts
        return done


class _Handler:
    """The two tasks of a run: one that receives, and the output handler."""

    def __init__(self, run: FrontEndRun, texts: OneByOne) -> None:
        self._run = run
        self._texts = texts
        self._queue: asyncio.Queue[StepOutput] = asyncio.Queue()
        self.processor: OutputProcessor | None = None
        self.aborts = 0

    async def work(self, socket: zmq.asyncio.Socket) -> None:
        run = self._run
        receiving = asyncio.create_task(self._receive(socket))
        if run.request.only_receive:
            await receiving
            return
        self.processor = OutputProcessor(
            self._texts, run.streams, run.request.interval, run.counters
        )
        aborting = connect_push(run.context, run.request.abort_to)
        try:
            await self._handle(self.processor, aborting)
            await receiving
            await run.streams.all_read()
        finally:
            receiving.cancel()
            aborting.close(linger=0)

    async def _receive(self, socket: zmq.asyncio.Socket) -> None:
        decode = Decoder(StepOutput).decode
        only_receive = self._run.request.only_receive
        while True:
            frame = await socket.recv(copy=False)
            message = decode(frame.buffer)
            self._run.saw("received", message.emitted_ns, now_ns())
            if only_receive:
                self._run.counters.steps += 1
            else:
                self._queue.put_nowait(message)
            if message.is_last:
                return

    async def _handle(self, processor: OutputProcessor, aborting: zmq.asyncio.Socket) -> None:
        run = self._run
        size = run.request.chunk_size
        encode = Encoder().encode
        while True:
            message = await self._queue.get()
            rows = message.rows
            for start in range(0, len(rows), size):
                aborts = processor.process(rows[start : start + size], message.emitted_ns)
                if start + size < len(rows):
                    await asyncio.sleep(0)
                if aborts:
                    self.aborts += len(aborts)
                    await aborting.send(encode(aborts))
            at_ns = now_ns()
            run.counters.steps += 1
            run.counters.lag_ns = at_ns - message.emitted_ns
            run.saw("decoded", message.emitted_ns, at_ns)
            if message.is_last:
                return


if __name__ == "__main__":
    serve(VllmFrontEnd())
