"""The rungs below HTTP: from the socket to the text of a stream's events.

After ``AsyncMPClient`` and ``AsyncLLM._run_output_handler`` (vllm/v1/engine/core_client.py,
async_llm.py), whose loops are not to be had without an engine behind them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import zmq
import zmq.asyncio

from . import stands_on
from .engine import MODEL_NAME, Engine

_STOP = "</answer>"  # does not come up in the texts


class Inbox:
    """Steps of the engine: received, decoded, queued; received for all rungs alike."""

    def __init__(self, engine: Engine, address: str) -> None:
        """Binds the address, as the front end does."""
        names = engine.names
        context = zmq.asyncio.Context(zmq.Context(io_threads=2))
        self._socket = names.make_zmq_socket(context, address, zmq.PULL)
        self._decode = names.MsgpackDecoder(names.EngineCoreOutputs).decode
        self.steps: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.ensure_future(self._receive())

    async def _receive(self) -> None:
        while True:
            frames = await self._socket.recv_multipart(copy=False)
            self.steps.put_nowait(self._decode(frames))


class Chain:
    """A rung that runs: its requests, and the task that handles steps.

    ``tokens`` have arrived; ``chunks`` are what the streams made of them, where they are read here.
    """

    def __init__(self, engine: Engine, inbox: Inbox, rung: str, ids: list[str]) -> None:
        """``ids``: the requests that steps will have rows of."""
        self._engine = engine
        self._steps = inbox.steps
        self._has_statistics = stands_on(rung, "statistics")
        self._processor = engine.counting if self._has_statistics else engine.plain
        self._ids = ids
        self._collectors: list[Any] = []
        if rung != "wire":
            stop = [_STOP] if stands_on(rung, "stop") else []
            self._open(stands_on(rung, "decode"), stop)
        self._drains = not stands_on(rung, "hand-over")
        self.tokens = self.chunks = 0
        self._tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._handle(rung))]
        if rung in {"hand-over", "json"}:
            make = self.outputs if rung == "hand-over" else self.events
            self._tasks += [
                asyncio.ensure_future(self._read(make(place))) for place in range(len(ids))
            ]

    def _open(self, detokenize: bool, stop: list[str]) -> None:
        names = self._engine.names
        for request_id in self._ids:
            request = self._engine.request(request_id, detokenize=detokenize, stop=stop)
            collector = names.RequestOutputCollector(names.RequestOutputKind.DELTA, request_id)
            self._processor.add_request(request, None, queue=collector)
            self._collectors.append(collector)

    async def end(self) -> None:
        """Cancel all tasks and forget the requests."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._processor.abort_requests(self._ids, internal=True)
        while not self._steps.empty():
            self._steps.get_nowait()

    async def _handle(self, rung: str) -> None:
        while True:
            outputs = await self._steps.get()
            self.tokens += len(outputs.outputs)
            if rung != "wire":
                self._process(outputs)

    def _process(self, outputs: Any) -> None:
        engine = self._engine
        statistics = engine.names.IterationStats() if self._has_statistics else None
        self._processor.process_outputs(outputs.outputs, outputs.timestamp, statistics)
        if self._has_statistics:
            self._processor.update_scheduler_stats(outputs.scheduler_stats)
            engine.loggers.record(
                engine_idx=0,
                scheduler_stats=outputs.scheduler_stats,
                iteration_stats=statistics,
                mm_cache_stats=None,
            )
        if self._drains:
            for collector in self._collectors:
                collector.get_nowait()

    async def _read(self, stream: AsyncIterator[Any]) -> None:
        async for _ in stream:
            self.chunks += 1

    def outputs(self, place: int) -> AsyncIterator[Any]:
        """``AsyncLLM.generate`` on a request that is open already."""

        async def opened(*_: Any, **__: Any) -> Any:
            return self._collectors[place]

        async def nothing(*_: Any, **__: Any) -> None:
            return None

        around = SimpleNamespace(add_request=opened, abort=nothing, log_requests=False)
        made: AsyncIterator[Any] = self._engine.names.AsyncLLM.generate(
            around, {}, None, self._ids[place]
        )
        return made

    def events(self, place: int) -> AsyncIterator[str]:
        """The server-sent events of a stream, as the completions endpoint writes them."""
        names, prompt = self._engine.names, list(range(100, 116))
        request = names.CompletionRequest(
            model=MODEL_NAME, prompt=prompt, stream=True, temperature=0.0, max_tokens=1 << 20
        )
        shown = self._ids[place].rsplit("-", 2)[0]
        made: AsyncIterator[str] = self._engine.serving.completion_stream_generator(
            request,
            [{"type": "token", "prompt_token_ids": prompt}],
            names.merge_async_iterators(self.outputs(place)),
            shown,
            int(time.time()),
            MODEL_NAME,
            num_prompts=1,
            tokenizer=None,
            request_metadata=names.RequestResponseMetadata(request_id=shown),
        )
        return made
