"""A client's streams: the bytes of a response, counted in most of them and parsed in some.

Most streams are drained: bytes and events are counted, nothing is parsed. The sampled ones are
parsed, and time is taken when bytes arrive, before anything is looked at. Events that come in one
read have come together.
"""

from __future__ import annotations

import asyncio
import re

import msgspec

from detokbench.live.http_streams import EVENT_MARK, PATH, Event
from detokbench.live.recording import Recorder, StreamRecord
from detokbench.live.schedule import now_ns

_LAST_CHUNK = b"0\r\n\r\n"
_EVENT = re.compile(rb"data: (\{.*?\})\n\n")


class OpenStreams:
    """The streams that are open now."""

    def __init__(self) -> None:
        self._streams: set[Drained] = set()
        self._one_closed = asyncio.Event()

    def add(self, stream: Drained) -> None:
        self._streams.add(stream)

    def discard(self, stream: Drained) -> None:
        self._streams.discard(stream)
        self._one_closed.set()

    async def all_closed(self) -> None:
        """Wait until none is open."""
        while self._streams:
            self._one_closed.clear()
            await self._one_closed.wait()

    def abandon_all(self) -> None:
        """Close every connection, whatever is still to come."""
        for stream in list(self._streams):
            stream.abandon()


class Drained(asyncio.Protocol):
    """A stream whose events are counted."""

    def __init__(
        self, number: int, port: int, recorder: Recorder, open_streams: OpenStreams
    ) -> None:
        self._number = number
        self._port = port
        self._counters = recorder.counters
        self._open = open_streams
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)
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
        self._open.discard(self)

    def abandon(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class Parsed(Drained):
    """A sampled stream: every event is looked at."""

    def __init__(
        self, number: int, port: int, recorder: Recorder, open_streams: OpenStreams
    ) -> None:
        super().__init__(number, port, recorder, open_streams)
        self._window = recorder.window
        self._record = StreamRecord(number, recorder)
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
        self._window.see(first_ns)
        text = "".join(event.choices[0].text for event in events)
        self._counters.delivered += ids
        self._record.take(at_ns, text, ids, first_ns, finish)
