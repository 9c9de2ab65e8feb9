"""How much the clients' process can take: canned streams, as fast as they are read.

The engine's process sends the same event over and over, each in a write of its own, to as many
connections as a run would have; the clients drain them as they drain a run's streams.
"""

from __future__ import annotations

import asyncio
import socket
import time

import msgspec

from detokbench.live.collector import Chunk
from detokbench.live.http_streams import EVENT_MARK, frame
from detokbench.live.plan import BlastRequest, Bound, ReadBlastRequest
from detokbench.live.worker import Control


class Blasted(msgspec.Struct, kw_only=True):
    """Events and reads of one self-test, and the CPU seconds that they took."""

    events: int = 0
    reads: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0


def send_canned(request: BlastRequest, control: Control) -> Blasted:
    """Send to whoever connects until the time is over; answers what was sent."""
    event = frame(0, Chunk(" word", 1, 0), 1)
    chunk = b"%x\r\n%s\r\n" % (len(event), event)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server:
        server.settimeout(5)
        control.send("bound", Bound(address="", port=server.getsockname()[1]))
        streams = [server.accept()[0] for _ in range(request.streams)]
    end = time.perf_counter() + request.seconds
    sent = 0
    for stream in streams:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while time.perf_counter() < end and not control.stopping:
        for stream in streams:
            stream.sendall(chunk)
        sent += len(streams)
    for stream in streams:
        stream.close()
    return Blasted(events=sent)


class _Drain(asyncio.Protocol):
    def __init__(self, total: Blasted, closed: asyncio.Queue[None]) -> None:
        self._total = total
        self._closed = closed

    def data_received(self, data: bytes) -> None:
        self._total.reads += 1
        self._total.events += data.count(EVENT_MARK)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.put_nowait(None)


async def read_canned(request: ReadBlastRequest) -> Blasted:
    """Connect, and read until all streams have ended."""
    total = Blasted()
    closed: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for _ in range(request.streams):
        await loop.create_connection(lambda: _Drain(total, closed), "127.0.0.1", request.port)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(request.streams):
        await closed.get()
    total.cpu_s = time.process_time() - cpu
    total.wall_s = time.perf_counter() - wall
    return total
