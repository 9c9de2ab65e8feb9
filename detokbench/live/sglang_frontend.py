"""The sglang topology's front end: takes texts from the detokenizer and hands them to streams.

After SGLang 0.5.23 (managers/tokenizer_manager.py, ``handle_loop`` and ``_handle_batch_output``):
it gives the loop a turn after every 16 rows (``batch_notify_size``).
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import zmq.asyncio

from detokbench.live.calibrate import calibrate_texts
from detokbench.live.front_end import FrontEndRun
from detokbench.live.messages import Decoder, StepText
from detokbench.live.plan import CalibrateRequest, Done, Loaded, LoadRequest, RunRequest
from detokbench.live.schedule import now_ns
from detokbench.live.text_handler import TextHandler
from detokbench.live.worker import Control, serve


class SglangFrontEnd:
    """The role. It needs no vocabulary: prompts come as ids here."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
        self._workload_file = request.workload_file
        self._seed = request.seed

    def do(self, request: Any, control: Control) -> msgspec.Struct:
        match request:
            case RunRequest():
                return asyncio.run(self._run(request, control))
            case CalibrateRequest():
                return asyncio.run(calibrate_texts(request, self._workload_file, self._seed))
        raise TypeError(f"a front end does not know {type(request).__name__}")

    async def _run(self, request: RunRequest, control: Control) -> Done:
        run = FrontEndRun(request, control)
        work = _Work(run)
        done = await run.go(work.work)
        if work.handler is not None:
            done.chunks_put = work.handler.chunks_put
            done.states_left = len(work.handler)
        return done


class _Work:
    def __init__(self, run: FrontEndRun) -> None:
        self._run = run
        self.handler: TextHandler | None = None

    async def work(self, socket: zmq.asyncio.Socket) -> None:
        run = self._run
        decode = Decoder(StepText).decode
        self.handler = TextHandler(run.streams, run.counters)
        lasts = 0
        while lasts < run.request.detokenizers:
            frame = await socket.recv(copy=False)
            message = decode(frame.buffer)
            run.saw("received", message.emitted_ns, now_ns())
            if not run.request.only_receive:
                await self.handler.take(message)
            run.counters.steps += 1
            run.counters.lag_ns = now_ns() - message.emitted_ns
            lasts += message.is_last
        if not run.request.only_receive:
            await run.streams.all_read()


if __name__ == "__main__":
    serve(SglangFrontEnd())
