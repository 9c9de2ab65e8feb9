"""Where requests come from and ids go to: SGLang's sockets, or its Rust server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A wait in whole milliseconds may end late by one; the rest is slept.
_MARGIN_NS = 1_500_000
# The Rust server's wait does not see the supervisor's questions.
_LONGEST_RUST_WAIT_MS = 20


class Sockets:
    """The sockets between SGLang's processes (``SchedulerIpcChannels`` in
    sglang/srt/managers/scheduler_components/ipc_channels.py)."""

    def __init__(self, port_args: Any, receive: Callable[..., Any], send: Callable[..., None]):
        """``receive`` and ``send`` are SGLang's own (``sock_recv``, ``sock_send``)."""
        import zmq

        self._again = zmq.Again
        self._noblock = zmq.NOBLOCK
        self._receive, self._send = receive, send
        context = zmq.Context(1)
        self._requests = _connected(context, zmq.PULL, port_args.scheduler_input_ipc_name)
        self._detokenizer = _connected(context, zmq.PUSH, port_args.detokenizer_ipc_name)
        self._tokenizer = _connected(context, zmq.PUSH, port_args.tokenizer_ipc_name)
        self._poller = zmq.Poller()
        self._poller.register(self._requests, zmq.POLLIN)

    def also_wake_for(self, socket: Any) -> None:
        import zmq

        self._poller.register(socket, zmq.POLLIN)

    def wait(self, until_ns: int) -> None:
        """Wait for a request, not beyond ``until_ns``; may return early."""
        left = until_ns - time.perf_counter_ns() - _MARGIN_NS
        if left > 0:
            self._poller.poll(left // 1_000_000)

    def requests(self) -> list[Any]:
        """What has arrived; never waits."""
        arrived = []
        while True:
            try:
                arrived.append(self._receive(self._requests, self._noblock))
            except self._again:
                return arrived

    def generated(self, batch: Any) -> None:
        self._send(self._detokenizer, batch)

    def reply(self, request: Any, answer: Any) -> None:
        """Answer something other than a request to generate; to the worker that asked."""
        asked_by = getattr(request, "http_worker_ipc", None)
        if asked_by is not None and getattr(answer, "http_worker_ipc", "") is None:
            answer.http_worker_ipc = asked_by
        self._send(self._tokenizer, answer)


class RustServer:
    """The Rust server in this process (``RustServer`` in sglang/srt/rust_server/server.py)."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def also_wake_for(self, socket: Any) -> None:
        """It cannot: the supervisor is answered between its waits."""

    def wait(self, until_ns: int) -> None:
        left = (until_ns - time.perf_counter_ns() - _MARGIN_NS) // 1_000_000
        if left > 0:
            self._server.wait_request(min(left, _LONGEST_RUST_WAIT_MS))

    def requests(self) -> list[Any]:
        return list(self._server.drain(-1))

    def generated(self, batch: Any) -> None:
        self._server.push_generation(batch, {})

    def reply(self, request: Any, answer: Any) -> None:
        self._server.push_control_output(request, answer)


class ControlSocket:
    """The supervisor's channel: JSON over ZMQ, answered without waiting."""

    def __init__(self, folder: Path, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        import zmq

        self.socket = zmq.Context(1).socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 1000)
        self.socket.bind(f"ipc://{folder / 'engine'}")
        self._answer = answer

    def answer_all(self) -> None:
        while self.socket.poll(0):
            try:
                reply = self._answer(json.loads(self.socket.recv()))
            except (KeyError, TypeError, ValueError) as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            self.socket.send(json.dumps(reply).encode())


def _connected(context: Any, kind: int, address: str) -> Any:
    import zmq

    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.connect(address)
    return socket
