"""The clients' process: streams that are kept open, read as cheaply as Python can.

One thread, epoll and plain sockets that stay open from request to request, as an OpenAI client's
pool does. While a run goes on, bytes are only counted and kept with the time at which they came;
what they say is read when it is over. Collection of garbage is off meanwhile: nothing is made that
could be in a cycle.
"""

from __future__ import annotations

import gc
import select
import socket
import time
from pathlib import Path
from typing import Any

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.live.engines.client_plan import (
    ClientRequest,
    ClientsDone,
    OneRequest,
    StreamsRequest,
)
from detokbench.live.engines.seen_streams import SeenStream, read_stream
from detokbench.live.open_files import allow_many_files
from detokbench.live.plan import Bound, Loaded, LoadRequest
from detokbench.live.schedule import now_ns
from detokbench.live.worker import Control, serve

_READ_BYTES = 65_536
_LAST_CHUNK = b"0\r\n\r\n"
_GOOD = b"HTTP/1.1 200"
_POLL_S = 0.05


class Clients:
    """The role."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
        """Nothing to load: a client knows no vocabulary."""

    def do(self, request: Any, control: Control) -> msgspec.Struct:
        match request:
            case StreamsRequest():
                return _Run(request, control).go()
            case OneRequest():
                return read_one(request)
        raise TypeError(f"clients do not know {type(request).__name__}")


class _Answer:
    """One request's answer as it comes in."""

    __slots__ = ("at_ns", "ended", "is_kept", "max_tokens", "number", "pieces", "sent_ns")

    def __init__(self, number: int, max_tokens: int, is_kept: bool) -> None:
        self.number = number
        self.max_tokens = max_tokens
        self.is_kept = is_kept
        self.sent_ns = 0
        self.at_ns: list[int] = []
        self.pieces: list[bytes] = []
        self.ended = False

    def seen(self) -> SeenStream:
        return read_stream(
            self.number, self.max_tokens, self.sent_ns, self.at_ns, self.pieces, self.ended
        )


class _Connection:
    """A socket, and the answer that is coming in over it."""

    __slots__ = ("answer", "is_first", "last", "socket")

    def __init__(self, host: str, port: int) -> None:
        try:
            self.socket = socket.create_connection((host, port), timeout=10)
        except OSError as error:
            raise DetokbenchError(f"no connection to {host}:{port}: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = _Answer(-1, 0, False)
        self.last = b""
        self.is_first = True

    def ask(self, head: bytes, body: bytes, answer: _Answer) -> None:
        self.answer, self.last, self.is_first = answer, b"", True
        self.socket.setblocking(True)
        self.socket.sendall(head % len(body) + body)
        answer.sent_ns = now_ns()
        self.socket.setblocking(False)


def head_of(host: str, port: int, path: str) -> bytes:
    """The head of a request, with a place for the length of its body."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        "Accept: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    ).encode()


class _Run:
    """Streams until the supervisor says stop."""

    def __init__(self, request: StreamsRequest, control: Control) -> None:
        self._request = request
        self._control = control
        self._head = head_of(request.host, request.port, request.path)
        self._next = request.first
        self._kept: list[_Answer] = []
        self._open: dict[int, _Connection] = {}
        self._poller: Any = select.epoll() if hasattr(select, "epoll") else select.poll()
        self._timeout = _POLL_S if hasattr(select, "epoll") else _POLL_S * 1000
        self._done = ClientsDone(requests=0, ended=0, reads=0, events=0, kept=0)

    def go(self) -> ClientsDone:
        allow_many_files()
        gc.collect()
        gc.disable()
        try:
            self._read_until_stopped()
        except (DetokbenchError, OSError) as error:
            self._done.error = self._done.error or str(error)
        finally:
            for connection in self._open.values():
                connection.socket.close()
            gc.enable()
        while not self._control.stopping:  # gave up: what ends the run is the supervisor's word
            time.sleep(_POLL_S)
        return self._write()

    def _read_until_stopped(self) -> None:
        count = self._request.streams
        try:
            for place in range(count):
                part = max(self._request.max_tokens * (place + 1) // count, 1)
                self._connect(part)
        finally:
            self._control.send("bound", Bound(address=""))
        poll, timeout, streams = self._poller.poll, self._timeout, self._open
        while not self._control.stopping and not self._done.error:
            for handle, _ in poll(timeout):
                self._read(streams[handle])

    def _connect(self, max_tokens: int) -> None:
        connection = _Connection(self._request.host, self._request.port)
        handle = connection.socket.fileno()
        self._open[handle] = connection
        self._ask(connection, max_tokens)
        self._poller.register(handle, select.POLLIN)

    def _ask(self, connection: _Connection, max_tokens: int) -> None:
        request = self._request
        place, self._next = self._next, self._next + 1
        row = place % len(request.bodies)
        number = place // len(request.bodies) * request.stride + row
        self._done.requests += 1
        answer = _Answer(number, max_tokens, place % request.keep_every == 0)
        if answer.is_kept:
            self._kept.append(answer)
        body = (
            f'{request.bodies[row]},"{request.number_field}":{number},"max_tokens":{max_tokens}}}'
        )
        connection.ask(self._head, body.encode(), answer)

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        at_ns = now_ns()
        answer = connection.answer
        self._done.reads += 1
        if answer.is_kept:
            answer.at_ns.append(at_ns)
            answer.pieces.append(data)
        if connection.is_first:
            connection.is_first = False
            if not data.startswith(_GOOD):
                self._done.error = refusal(data)
                return
        self._done.events += data.count(b"\n\n")
        if data.endswith(_LAST_CHUNK) or len(data) < len(_LAST_CHUNK):
            self._may_have_ended(connection, data)
        connection.last = data

    def _may_have_ended(self, connection: _Connection, data: bytes) -> None:
        if not data:
            self._poller.unregister(connection.socket.fileno())
            del self._open[connection.socket.fileno()]
            connection.socket.close()
            if not connection.answer.ended:
                self._done.error = "the server closed a stream before its end"
                return
            self._connect(self._request.max_tokens)
        elif is_end(connection.last, data):
            connection.answer.ended = True
            self._done.ended += 1
            self._ask(connection, self._request.max_tokens)

    def _write(self) -> ClientsDone:
        streams = [answer.seen() for answer in self._kept if answer.pieces]
        self._done.kept = len(streams)
        Path(self._request.file).write_bytes(msgspec.msgpack.encode(streams))
        return self._done


def is_end(before: bytes, data: bytes) -> bool:
    """Whether an answer ends with this read: its last chunk is the empty one.

    A line ``…10`` and a blank line can end a head alone, so what is in front is looked at.
    """
    joined = before[-6:] + data if len(data) < 7 else data
    return joined.endswith(b"\r\n" + _LAST_CHUNK)


def refusal(data: bytes) -> str:
    """What a server said instead of a stream."""
    head, _, body = data.partition(b"\r\n\r\n")
    status = head.partition(b"\r\n")[0].partition(b" ")[2].decode(errors="replace")
    says = " ".join(body.decode(errors="replace").split())[:200]
    return f"the server answered {status or 'nothing'}{': ' + says if says else ''}"


def read_one(request: OneRequest) -> SeenStream:
    """One request from its beginning to its end. ``error`` says what went wrong."""
    answer = _Answer(request.number, request.max_tokens, True)
    try:
        connection = _Connection(request.host, request.port)
        head = head_of(request.host, request.port, request.path)
        connection.ask(head, request.body.encode(), answer)
        connection.socket.settimeout(request.timeout_s)
        before = b""
        while data := connection.socket.recv(_READ_BYTES):
            answer.at_ns.append(now_ns())
            answer.pieces.append(data)
            if is_end(before, data):
                answer.ended = True
                break
            before = data
            if not answer.pieces[0].startswith(_GOOD):
                break
        connection.socket.close()
    except (DetokbenchError, OSError) as error:
        return SeenStream(request.number, request.max_tokens, 0, [], False, error=str(error))
    if not answer.pieces or not answer.pieces[0].startswith(_GOOD):
        says = refusal(b"".join(answer.pieces))
        return SeenStream(request.number, request.max_tokens, 0, [], False, error=says)
    return answer.seen()


if __name__ == "__main__":
    serve(Clients(), ClientRequest)
