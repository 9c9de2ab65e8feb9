"""The rungs of HTTP: vLLM's app called directly, and behind uvicorn on a socket."""

from __future__ import annotations

import asyncio
import importlib
import socket
from itertools import count
from typing import Any

from .chain import Chain
from .engine import Engine

_BODY = (
    b'{"model":"detokbench","prompt":[100,101],"stream":true,"temperature":0,"max_tokens":65536}'
)


class Answers:
    """In place of the serving object: the n-th request gets the n-th stream of the chain."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._next = count()
        self.asked = 0

    async def create_completion(self, request: Any, raw_request: Any = None) -> Any:
        """What the endpoint calls; it streams what comes back."""
        self.asked += 1
        return self._chain.events(next(self._next))


class DirectCalls:
    """The app is called as a server calls it, and what it sends is dropped."""

    def __init__(self, engine: Engine, chain: Chain, streams: int) -> None:
        engine.app.state.openai_serving_completion = Answers(chain)
        self._tasks = [asyncio.ensure_future(_call(engine.app, chain)) for _ in range(streams)]

    async def end(self) -> None:
        """Cancel the calls."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class HttpServer:
    """uvicorn with the settings that vLLM gives it (``serve_http``)."""

    def __init__(self, engine: Engine, chain: Chain) -> None:
        self._answers = engine.app.state.openai_serving_completion = Answers(chain)
        self._socket = socket.create_server(("127.0.0.1", 0))
        config = importlib.import_module("uvicorn").Config(
            engine.app, log_level="warning", lifespan="off"
        )
        config.load()
        self._server = engine.names.NoSignalServer(config)
        self._task = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))

    @property
    def asked(self) -> int:
        """Requests that came so far."""
        return self._answers.asked

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    async def end(self) -> None:
        """Close all connections and stop listening."""
        self._server.should_exit = self._server.force_exit = True
        await self._task
        self._socket.close()


def parser_name() -> str:
    """Which parser uvicorn takes here: h11, in Python, where httptools is not installed."""
    chosen = importlib.import_module("uvicorn.protocols.http.auto").AutoHTTPProtocol
    return str(chosen.__module__).rsplit(".", 1)[-1].removesuffix("_impl")


async def _call(app: Any, chain: Chain) -> None:
    asked = False
    forever = asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await forever.wait()
        asked = True
        return {"type": "http.request", "body": _BODY, "more_body": False}

    async def send(_: dict[str, Any]) -> None:
        chain.chunks += 1

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/completions",
        "raw_path": b"/v1/completions",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    await app(scope, receive, send)
