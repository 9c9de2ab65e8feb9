"""The front end's HTTP side: one streaming response for each request, from aiohttp's server.

``POST /v1/completions`` with ``{"request": n, "stream": true}`` answers server-sent events of
OpenAI's form. Two fields are ours: ``usage.completion_tokens`` in every chunk, as vLLM sends it
with continuous usage statistics, and ``emitted_ns``, when the engine had the chunk's oldest id.
The JSON is made by msgspec, which is cheaper than the pydantic of the engines' servers.
"""

from __future__ import annotations

import asyncio

import msgspec
from aiohttp import web

from detokbench.errors import DetokbenchError
from detokbench.live.collector import Chunk, Collector
from detokbench.live.recording import Recorder

PATH = "/v1/completions"
DONE = b"data: [DONE]\n\n"
EVENT_MARK = b'"text":"'
"""Once in every event: quotes inside a text are escaped."""


class Choice(msgspec.Struct):
    """The text of a chunk."""

    text: str
    finish_reason: str | None = None
    index: int = 0


class Usage(msgspec.Struct):
    """Ids of the request so far."""

    completion_tokens: int


class Event(msgspec.Struct):
    """One chunk on the wire."""

    id: str
    choices: list[Choice]
    usage: Usage
    emitted_ns: int
    object: str = "text_completion"
    created: int = 1
    model: str = "meta-llama/Meta-Llama-3-8B-Instruct"


class Asked(msgspec.Struct):
    """The body of a request to this server: the number that the engine announced."""

    request: int


_encode = msgspec.json.Encoder().encode


def frame(number: int, chunk: Chunk, total_ids: int) -> bytes:
    """A chunk as one server-sent event."""
    event = Event(
        f"cmpl-{number}", [Choice(chunk.text, chunk.finish)], Usage(total_ids), chunk.first_ns
    )
    return b"data: " + _encode(event) + b"\n\n"


class HttpStreams:
    """Collectors by request, made by whoever comes first: the engine's ids or the client."""

    def __init__(self, batch: int, recorder: Recorder) -> None:
        self._recorder = recorder
        self._collectors: dict[int, Collector] = {}
        self._begun: set[int] = set()
        self._unread: set[int] = set()
        self._changed = asyncio.Event()
        self._has_ended = False
        self._runner: web.AppRunner | None = None

    def open(self, number: int) -> Collector:
        self._begun.add(number)
        self._unread.add(number)
        return self._collectors.setdefault(number, Collector())

    async def listen(self) -> int:
        """Start the server on a port of the loopback that the system chooses; returns the port."""
        application = web.Application()
        application.router.add_post(PATH, self._complete)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=4096)
        try:
            await site.start()
        except OSError as error:
            raise DetokbenchError(f"cannot listen on the loopback: {error.strerror}") from error
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """End the server and whatever it still answers."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def all_read(self) -> None:
        self._has_ended = True
        for number, collector in self._collectors.items():
            if number not in self._begun:
                collector.put(Chunk("", 0, 0, "abort"))
        while self._unread or self._collectors:
            self._changed.clear()
            await self._changed.wait()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        number = msgspec.json.decode(await request.read(), type=Asked).request
        collector = self._collectors.setdefault(number, Collector())
        if self._has_ended and number not in self._begun:
            collector.put(Chunk("", 0, 0, "abort"))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._write(number, collector, response)
            await response.write_eof()
        except ConnectionError:
            pass  # the client has left
        finally:
            self._collectors.pop(number, None)
            self._begun.discard(number)
            self._unread.discard(number)
            self._changed.set()
        return response

    async def _write(self, number: int, collector: Collector, response: web.StreamResponse) -> None:
        counters = self._recorder.counters
        finish, total = None, 0
        while finish is None:
            chunk = collector.get_nowait() or await collector.get()
            finish = chunk.finish
            total += chunk.ids
            await response.write(frame(number, chunk, total))
            counters.chunks += 1
            counters.delivered += chunk.ids
        await response.write(DONE)
