"""Where requests come from and ids go to: SGLang's sockets, or its Rust server."""

from __future__ import annotations

import inspect
import json
import pickle
import select
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# The Rust server's wait counts in ms; and it does not see the supervisor's questions.
_RUST_MARGIN_MS = 2
_LONGEST_RUST_WAIT_MS = 20


class Sockets:
    """The sockets between SGLang's processes (``SchedulerIpcChannels`` in
    sglang/srt/managers/scheduler_components/ipc_channels.py)."""

    def __init__(self, port_args: Any, messages: Any) -> None:
        """``messages`` is SGLang's module ``io_struct``, which knows what goes over a socket."""
        import zmq

        self._receive = getattr(messages, "sock_recv", _receive_pickled)
        self._send = getattr(messages, "sock_send", _send_pickled)
        context = zmq.Context(1)
        self._requests = _connected(context, zmq.PULL, port_args.scheduler_input_ipc_name)
        self._detokenizer = _connected(context, zmq.PUSH, port_args.detokenizer_ipc_name)
        self._tokenizer = _connected(context, zmq.PUSH, port_args.tokenizer_ipc_name)
        self._descriptors = [self._requests.getsockopt(zmq.FD)]

    def also_wake_for(self, socket: Any) -> None:
        import zmq

        self._descriptors.append(socket.getsockopt(zmq.FD))

    def wait(self, at_most_ns: int) -> None:
        """Wait for a request or a question, sharp to the microsecond: a poll of ZMQ's counts in ms.

        A socket's descriptor tells only that something has changed, so ask for both before.
        """
        select.select(self._descriptors, [], [], at_most_ns * 1e-9)

    def requests(self) -> list[Any]:
        """What has arrived; never waits."""
        arrived = []
        while has_message(self._requests):
            arrived.append(self._receive(self._requests))
        return arrived

    def prepared(self, batch: Any) -> Callable[[], Any]:
        """Encode a step's message now; what is returned sends it."""
        held = _HeldBack()
        self._send(held, batch)
        return partial(self._detokenizer.send, held.frame)

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
        # Latencies of finished requests that do not stream, in the versions that take them.
        takes = len(inspect.signature(server.push_generation).parameters)
        self._rest: tuple[Any, ...] = ({},) if takes > 1 else ()

    def also_wake_for(self, socket: Any) -> None:
        """It cannot: the supervisor is answered between its waits."""

    def wait(self, at_most_ns: int) -> None:
        whole_ms = at_most_ns // 1_000_000 - _RUST_MARGIN_MS
        if whole_ms > 0:
            self._server.wait_request(min(whole_ms, _LONGEST_RUST_WAIT_MS))
        else:
            time.sleep(at_most_ns * 1e-9)

    def requests(self) -> list[Any]:
        return list(self._server.drain(-1))

    def prepared(self, batch: Any) -> Callable[[], Any]:
        """What is returned encodes and sends a step's message: the server has one call for both."""
        return partial(self._server.push_generation, batch, *self._rest)

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
        while has_message(self.socket):
            try:
                reply = self._answer(json.loads(self.socket.recv()))
            except (KeyError, TypeError, ValueError) as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            self.socket.send(json.dumps(reply).encode())


def has_message(socket: Any) -> bool:
    """Whether there is something to receive, without waiting."""
    import zmq

    return bool(socket.getsockopt(zmq.EVENTS) & zmq.POLLIN)


def _connected(context: Any, kind: int, address: str) -> Any:
    import zmq

    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.connect(address)
    return socket


class _HeldBack:
    """Takes what would be sent over a socket, as the bytes that it would send."""

    frame: bytes = b""

    def send(self, data: bytes, flags: int = 0, **_: Any) -> None:
        self.frame = data

    def send_pyobj(self, value: Any, flags: int = 0, protocol: int = -1, **_: Any) -> None:
        self.frame = pickle.dumps(value, protocol)


def _receive_pickled(socket: Any) -> Any:
    return socket.recv_pyobj()


def _send_pickled(socket: Any, value: Any) -> None:
    socket.send_pyobj(value)
