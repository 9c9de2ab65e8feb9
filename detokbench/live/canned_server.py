"""A server that plays what it is told to: good streams at a given pace, and every bad behaviour.

Plain asyncio, since a web framework would not let a line be cut or a connection be dropped. For
tests and for measuring clients; it listens on the loopback address only.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from detokbench.live.canned_script import Script, frames, whole_answer

_PIECE = b"x" * 65536
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


@dataclass
class Canned:
    """A running server: where it is, and what it was asked."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of all requests for completions, in the order in which they came."""
    authorizations: list[str | None] = field(default_factory=list)


@dataclass
class _Server:
    scripts: Mapping[str, Script]
    default: Script
    metrics: str | None
    refuses: frozenset[str]
    model: str | None
    seen: Canned

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request after the other on a connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer_one(reader, writer):
                pass
        writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = first.split(" ")[1].partition("?")[0]
        if path.endswith("/models") and self.model is not None:
            answer = {"object": "list", "data": [{"id": self.model}]}
            return await _send(writer, json.dumps(answer).encode())
        if path == "/metrics" and self.metrics is not None:
            return await _send(writer, self.metrics.encode(), content_type="text/plain")
        if not path.endswith("/completions"):
            return await _send(writer, b'{"detail":"Not Found"}', status=404)
        self.seen.authorizations.append(headers.get("authorization"))
        asked = json.loads(body)
        self.seen.requests.append(asked)
        return await self._complete(asked, path.endswith("/chat/completions"), writer)

    async def _complete(
        self, asked: dict[str, Any], chat: bool, writer: asyncio.StreamWriter
    ) -> bool:
        refused = sorted(self.refuses & asked.keys())
        if refused:
            message = {"detail": f"Unexpected fields in the request: {refused}"}
            return await _send(writer, json.dumps(message).encode(), status=422)
        prompt = asked["messages"][-1]["content"] if chat else asked["prompt"]
        script = self.scripts.get(prompt, self.default)
        if script.behaviour == "error-json":
            error = {"error": {"message": "the context is too long", "code": script.status}}
            return await _send(writer, json.dumps(error).encode(), status=script.status)
        if script.behaviour == "error-html":
            page = b"<html><body><h1>Bad gateway</h1></body></html>"
            return await _send(writer, page, status=script.status, content_type="text/html")
        if script.behaviour == "no-answer":
            await asyncio.sleep(3600)
        if script.behaviour == "close-at-once":
            return False
        if not asked.get("stream"):
            return await _send(writer, whole_answer(script, chat))
        return await _Playing(script, chat, asked.get("stop") or [], writer).play()


@dataclass
class _Playing:
    """One stream on its way out."""

    script: Script
    chat: bool
    stop: list[str]
    writer: asyncio.StreamWriter
    started_s: float = field(default_factory=monotonic)

    async def play(self) -> bool:
        """Send the stream. Returns whether the connection may be used again."""
        behaviour = self.script.behaviour
        kind = "text/html" if behaviour == "html" else "text/event-stream; charset=utf-8"
        self.writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        if behaviour == "html":
            await self._write(b"<html><body>Please log in</body></html>")
        elif behaviour == "long-line":
            await self._long_line()
        elif behaviour == "endless":
            await self._endless()
        elif behaviour != "nothing" and not await self._frames():
            self.writer.transport.abort()
            return False
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()
        return True

    async def _frames(self) -> bool:
        """Send the frames of the script, up to where it goes wrong; False for an end too soon."""
        behaviour = self.script.behaviour
        middle = len(self.script.tokens) // self.script.per_chunk // 2
        for number, frame in enumerate(frames(self.script, self.chat, self.stop)):
            await asyncio.sleep(max(0.0, self.started_s + frame.due_s - monotonic()))
            data = f"data: {frame.data}\n\n".encode()
            if number == middle and behaviour != "stream":
                if behaviour == "stall":
                    await asyncio.sleep(3600)
                if behaviour == "bad-json":
                    data = b'data: {"choices": [{"text": \n\n'
                if behaviour == "error-frame":
                    data = b'data: {"error": {"message": "the engine died"}}\n\n'
                if behaviour == "close-mid-line":
                    await self._write(data[: len(data) // 2])
                if behaviour.startswith("close-"):
                    await asyncio.sleep(0.01)  # an abort would also drop what is not sent yet
                    return False
            await self._write(data)
            if number == middle and behaviour == "error-frame":
                return True
        return True

    async def _long_line(self) -> None:
        await self._write(b'data: {"choices": [{"index": 0, "text": "')
        for _ in range(self.script.long_line_bytes // len(_PIECE) + 1):
            await self._write(_PIECE)
        await self._write(b'"}]}\n\n')

    async def _endless(self) -> None:
        text = {"delta": {"content": " and"}} if self.chat else {"text": " and"}
        data = f"data: {json.dumps({'choices': [{'index': 0, **text}]})}\n\n".encode()
        while True:
            await self._write(data)
            await asyncio.sleep(max(self.script.pace_s, 0.0))

    async def _write(self, data: bytes) -> None:
        """One piece, or several where the script cuts them, each a chunk of HTTP of its own."""
        size = self.script.cut_bytes or len(data)
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self.writer.drain()
            if self.script.cut_bytes:
                await asyncio.sleep(0)


async def _send(
    writer: asyncio.StreamWriter,
    body: bytes,
    status: int = 200,
    content_type: str = "application/json",
) -> bool:
    head = (
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    return True


@contextmanager
def canned_server(
    scripts: Mapping[str, Script] | None = None,
    default: Script = Script(),  # noqa: B008 - frozen
    metrics: str | None = None,
    refuses: frozenset[str] = frozenset(),
    model: str | None = "canned",
) -> Iterator[Canned]:
    """A server in a thread, on a free port of the loopback address, until the block ends.

    ``scripts`` are chosen by the text of the prompt; all others get ``default``. Requests with a
    field of ``refuses`` are answered with status 422. ``metrics`` is the page at ``/metrics``;
    without it, and without a ``model`` to list, these addresses answer 404.
    """
    started = threading.Event()
    loop = asyncio.new_event_loop()
    seen = Canned(url="")
    server = _Server(scripts or {}, default, metrics, refuses, model, seen)

    async def listen() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        seen.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        started.set()
        async with listening:
            await asyncio.Event().wait()

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(main)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()

    main = loop.create_task(listen())
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait()
    try:
        yield seen
    finally:
        loop.call_soon_threadsafe(main.cancel)
        thread.join()
