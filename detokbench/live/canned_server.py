"""A server that plays what it is told to: good streams at a given pace, and every bad behaviour.

Plain asyncio, for tests and for measuring clients; it listens on the loopback address only.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from detokbench.live.canned_playing import Playing
from detokbench.live.canned_script import Script, whole_answer

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
        """Returns whether the connection may be used again."""
        path, headers, body = await _read_request(reader)
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
        refused = sorted(self.refuses & asked.keys())
        if refused:
            message = {"detail": f"Unexpected fields in the request: {refused}"}
            return await _send(writer, json.dumps(message).encode(), status=422)
        return await self._complete(asked, path.endswith("/chat/completions"), writer)

    async def _complete(
        self, asked: dict[str, Any], chat: bool, writer: asyncio.StreamWriter
    ) -> bool:
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
        return await Playing(script, chat, asked.get("stop") or [], writer).play()


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    """Path, headers by their names in lower case, and body of the next request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return first.split(" ")[1].partition("?")[0], headers, body


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
    seen = Canned(url="")
    server = _Server(scripts or {}, default, metrics, refuses, model, seen)
    started = threading.Event()
    loop = asyncio.new_event_loop()
    main = loop.create_task(_listen(server, started))
    thread = threading.Thread(target=_run_until_cancelled, args=[loop, main], daemon=True)
    thread.start()
    started.wait()
    try:
        yield seen
    finally:
        loop.call_soon_threadsafe(main.cancel)
        thread.join()


async def _listen(server: _Server, started: threading.Event) -> None:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.seen.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    started.set()
    async with listening:
        await asyncio.Event().wait()


def _run_until_cancelled(loop: asyncio.AbstractEventLoop, main: asyncio.Task[None]) -> None:
    """Run the server; once it is cancelled, end what it still answers."""
    with suppress(asyncio.CancelledError):
        loop.run_until_complete(main)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
