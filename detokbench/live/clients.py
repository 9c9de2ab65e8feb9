"""The clients' process: opens a stream for every request that is announced, and reads it.

Plain asyncio, since a client that costs more than the server would measure itself.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import zmq.asyncio

from detokbench.live.blast import read_canned
from detokbench.live.client_streams import Drained, OpenStreams, Parsed
from detokbench.live.counting import Counters, Sample, Window, is_sampled
from detokbench.live.messages import Announced, Decoder
from detokbench.live.plan import Bound, Done, Loaded, LoadRequest, ReadBlastRequest, RunRequest
from detokbench.live.recording import Recorder
from detokbench.live.sockets import bind_pull
from detokbench.live.stoppable import work_until_stopped
from detokbench.live.worker import Control, serve


class Clients:
    """The role."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
        """Nothing to load: a client knows no vocabulary."""

    def do(self, request: Any, control: Control) -> msgspec.Struct:
        match request:
            case RunRequest():
                return asyncio.run(_Run(request, control).go())
            case ReadBlastRequest():
                return asyncio.run(read_canned(request))
        raise TypeError(f"clients do not know {type(request).__name__}")


class _Run:
    """One run: announcements in, streams opened and read."""

    def __init__(self, request: RunRequest, control: Control) -> None:
        self._request = request
        self._control = control
        self._counters = Counters()
        window = Window(request.warm_up_s, request.duration_s)
        self._recorder = Recorder(window, self._counters)
        self._open = OpenStreams()
        self._is_last = False

    async def go(self) -> Done:
        """Listen, say where, and read until all streams have ended or the run is to stop."""
        context: zmq.asyncio.Context = zmq.asyncio.Context()
        socket, address = bind_pull(context, self._request.folder, self._request.name)
        first = self._counters.sample()
        self._control.send("bound", Bound(address=address))
        try:
            await work_until_stopped(self._work(socket), self._counters, self._control)
        finally:
            self._open.abandon_all()
            socket.close()
            context.term()
        return self._done(first)

    def _done(self, first: Sample) -> Done:
        recorder = self._recorder
        return Done(
            first=first,
            last=self._counters.sample(),
            longest_block_ns=self._counters.late_ns,
            itl=recorder.itl.values,
            gaps=recorder.gaps.values,
            delays={"client": recorder.delays.values} if recorder.delays.values else {},
            streams=recorder.streams,
        )

    async def _work(self, socket: zmq.asyncio.Socket) -> None:
        decode = Decoder(Announced).decode
        opening: set[asyncio.Task[None]] = set()
        while not self._is_last:
            message = decode(await socket.recv())
            self._is_last = message.is_last
            for number in message.requests:
                task = asyncio.create_task(self._connect(number))
                opening.add(task)
                task.add_done_callback(opening.discard)
        while opening:
            await asyncio.gather(*opening)
        await self._open.all_closed()

    async def _connect(self, number: int) -> None:
        ports = self._request.urls
        port = ports[number % len(ports)]
        kind = Parsed if is_sampled(number, self._request.batch) else Drained
        make = partial(kind, number, port, self._recorder, self._open)
        loop = asyncio.get_running_loop()
        for _ in range(3):
            try:
                await loop.create_connection(make, "127.0.0.1", port)
                return
            except OSError:
                await asyncio.sleep(0.05)
        # At the end of a run the server may be gone before a request that will never begin.
        if not self._is_last:
            raise ConnectionError(f"no connection for request {number}")


if __name__ == "__main__":
    serve(Clients())
