"""The clients' process: opens a stream for every request that is announced, and reads it.

Plain asyncio, since a client that costs more than the server would measure itself. Most streams
are drained: bytes and events are counted, nothing is parsed. The sampled ones are parsed, and time
is taken when bytes arrive, before anything is looked at. Events that come in one read have come
together.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any

import msgspec
import zmq
import zmq.asyncio

from detokbench.live.blast import read_canned
from detokbench.live.counting import Counters, Sample, Window, is_sampled, keep_time
from detokbench.live.http_streams import PATH, Event
from detokbench.live.messages import Announced, Decoder
from detokbench.live.plan import Bound, Done, Loaded, LoadRequest, ReadBlastRequest, RunRequest
from detokbench.live.recording import Recorder, StreamRecord
from detokbench.live.schedule import now_ns
from detokbench.live.sockets import bind_pull
from detokbench.live.worker import Control, serve

EVENT_MARK = b'"text":"'
"""Once in every event: quotes inside a text are escaped."""
_LAST_CHUNK = b"0\r\n\r\n"
_EVENT = re.compile(rb"data: (\{.*?\})\n\n")


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
        self.counters = Counters()
        self.recorder = Recorder(Window(request.warm_up_s, request.duration_s), self.counters)
        self._open: set[Drained] = set()
        self._closed = asyncio.Event()
        self._is_last = False

    async def go(self) -> Done:
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        self._control.on_stop(lambda: loop.call_soon_threadsafe(stopped.set))
        context: zmq.asyncio.Context = zmq.asyncio.Context()
        socket, address = bind_pull(context, self._request.folder, self._request.name)
        first = self.counters.sample()
        self._control.send("bound", Bound(address=address))
        timing = asyncio.create_task(
            keep_time(self.counters, lambda sample: self._control.send("sample", sample))
        )
        working = asyncio.create_task(self._open_streams(socket))
        stopping = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            self._control.on_stop(None)
            working.cancel()
            timing.cancel()
            stopping.cancel()
            for stream in list(self._open):
                stream.abandon()
            socket.close()
            context.term()
        return self._done(first)

    def _done(self, first: Sample) -> Done:
        recorder = self.recorder
        return Done(
            first=first,
            last=self.counters.sample(),
            longest_block_ns=self.counters.late_ns,
            itl=recorder.itl.values,
            gaps=recorder.gaps.values,
            delays={"client": recorder.delays.values} if recorder.delays.values else {},
            streams=recorder.streams,
        )

    async def _open_streams(self, socket: zmq.asyncio.Socket) -> None:
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
        while self._open:
            self._closed.clear()
            await self._closed.wait()

    async def _connect(self, number: int) -> None:
        ports = self._request.urls
        port = ports[number % len(ports)]
        sampled = is_sampled(number, self._request.batch)
        loop = asyncio.get_running_loop()
        for _ in range(3):
            make = partial(Parsed if sampled else Drained, number, port, self)
            try:
                await loop.create_connection(make, "127.0.0.1", port)
                return
            except OSError:
                await asyncio.sleep(0.05)
        # At the end of a run the server may be gone before a request that will never begin.
        if not self._is_last:
            raise ConnectionError(f"no connection for request {number}")

    def opened(self, stream: Drained) -> None:
        self._open.add(stream)

    def closed(self, stream: Drained) -> None:
        self._open.discard(stream)
        self._closed.set()


class Drained(asyncio.Protocol):
    """A stream whose events are counted."""

    def __init__(self, number: int, port: int, run: _Run) -> None:
        self._number = number
        self._port = port
        self._run = run
        self._counters = run.counters
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._run.opened(self)
        body = b'{"request":%d,"stream":true}' % self._number
        transport.write(
            b"POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (PATH.encode(), self._port, len(body), body)
        )

    def data_received(self, data: bytes) -> None:
        self._counters.steps += 1
        self._counters.chunks += data.count(EVENT_MARK)
        if data.endswith(_LAST_CHUNK):
            self.abandon()

    def connection_lost(self, exc: Exception | None) -> None:
        self._run.closed(self)

    def abandon(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class Parsed(Drained):
    """A sampled stream: every event is looked at."""

    def __init__(self, number: int, port: int, run: _Run) -> None:
        super().__init__(number, port, run)
        self._record = StreamRecord(number, run.recorder)
        self._rest = b""
        self._total = 0
        self._decode = msgspec.json.Decoder(Event).decode

    def data_received(self, data: bytes) -> None:
        at_ns = now_ns()
        super().data_received(data)
        data = self._rest + data
        end, events = 0, []
        for match in _EVENT.finditer(data):
            events.append(self._decode(match[1]))
            end = match.end()
        self._rest = data[end:]
        if events:
            self._take(at_ns, events)

    def _take(self, at_ns: int, events: list[Event]) -> None:
        """What came in one read came together: its ids share the gap in front of it."""
        total = events[-1].usage.completion_tokens
        ids, self._total = total - self._total, total
        finish = events[-1].choices[0].finish_reason
        if finish == "abort":
            return  # the run ended before this request began
        first_ns = events[0].emitted_ns
        self._run.recorder.window.see(first_ns)
        text = "".join(event.choices[0].text for event in events)
        self._counters.delivered += ids
        self._record.take(at_ns, text, ids, first_ns, finish)


if __name__ == "__main__":
    serve(Clients())
