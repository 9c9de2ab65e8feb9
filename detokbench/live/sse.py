"""Server-sent events from bytes that come in pieces: the part of the format that servers use.

Follows the parsing rules of the HTML standard (server-sent events, section 9.2.6): lines end with
LF, CR or CRLF; a blank line ends an event; the ``data`` lines of an event are joined with LF; lines
that begin with a colon are comments. Pieces may be cut anywhere, within a character or between CR
and LF. Nothing here reads a clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

MAX_LINE_BYTES = 4 << 20
"""Room for a first frame that lists 128k prompt ids (about 1 MB), four times over."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DONE = b"[DONE]"
"""The data of the event that ends a stream."""
_DONE_LINES = {b"data:" + DONE, b"data: " + DONE}


class LineTooLongError(Exception):
    """A line has grown beyond the limit; nothing more is parsed."""


class Event(NamedTuple):
    """One event: its data, and when the piece that completed it came, in seconds."""

    at_s: float
    data: bytes
    name: bytes = b""
    """What an ``event`` line said."""


class SseParser:
    """Bytes in, events out. Holds no more than one event, each of whose lines is bounded."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""
        self._after_cr = False
        self._is_first_line = True

    @property
    def is_inside_line(self) -> bool:
        """Whether the last line has not ended."""
        return self._line_bytes > 0

    def feed(self, piece: bytes, at_s: float = 0.0) -> list[Event]:
        """The events that this piece, which came at ``at_s``, completes.

        Raises LineTooLongError where a line, or all data lines of one event, pass the limit.
        """
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        if not piece:
            return []
        self._after_cr = piece.endswith(b"\r")
        *ended, rest = _LINE_END.split(piece)
        events = []
        for part in ended:
            self._keep(part)
            event = self._end_line(at_s)
            if event is not None:
                events.append(event)
        self._keep(rest)
        return events

    def end(self, at_s: float = 0.0) -> Event | None:
        """An event whose lines all came and whose blank line did not, if there is one.

        The standard drops it; it has arrived all the same, and some servers end that way. A last
        ``[DONE]`` counts without the end of its line too.
        """
        if b"".join(self._parts).strip() in _DONE_LINES:
            self._end_line(at_s)
        return self._end_event(at_s)

    def _keep(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._line_bytes += len(part)
        if self._line_bytes + self._data_bytes > self._max_line_bytes:
            raise LineTooLongError

    def _end_line(self, at_s: float) -> Event | None:
        """Take the line that has ended; the event that it ends, if it does."""
        line = b"".join(self._parts)
        self._parts, self._line_bytes = [], 0
        if self._is_first_line:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._is_first_line = False
        if not line:
            return self._end_event(at_s)
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(value)
        elif name == b"event":
            self._name = value.removeprefix(b" ")
        return None

    def _end_event(self, at_s: float) -> Event | None:
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, b""
        return Event(at_s, b"\n".join(data), name) if data else None


class Parsed(NamedTuple):
    """What a whole stream held."""

    events: list[Event]
    inside_line: bool
    """Whether it ended within a line."""
    too_long: bool
    """Whether a line passed the limit, so that nothing behind it was parsed."""


def parse_stream(
    reads: Iterable[tuple[float, bytes]], max_line_bytes: int = MAX_LINE_BYTES
) -> Parsed:
    """The events of a stream from its reads, each read with the time at which it came."""
    parser = SseParser(max_line_bytes)
    events: list[Event] = []
    at_s = 0.0
    try:
        for at_s, piece in reads:
            events.extend(parser.feed(piece, at_s))
    except LineTooLongError:
        return Parsed(events, inside_line=True, too_long=True)
    last = parser.end(at_s)
    if last is not None:
        events.append(last)
    return Parsed(events, parser.is_inside_line, too_long=False)
