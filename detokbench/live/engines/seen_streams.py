"""What the clients saw of a stream, and how it is read from the bytes that came: no clock here.

The bytes are HTTP/1.1, chunked or not, with server-sent events in the form of OpenAI's interface.
An event has come when the read came that completed it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from detokbench.live.openai_stream import error_message
from detokbench.live.sse import DONE, SseParser

_HEAD_END = b"\r\n\r\n"


class SeenChunk(msgspec.Struct, array_like=True):
    """Text, and when it was there, in ns."""

    at_ns: int
    text: str


class SeenStream(msgspec.Struct, array_like=True):
    """One request. ``ended``: the answer is complete; else the run ended before it.

    ``empty_events`` have neither text nor an end: a role, usage. ``error`` is the server's.
    """

    number: int
    max_tokens: int
    sent_ns: int
    chunks: list[SeenChunk]
    ended: bool
    finish: str = ""
    empty_events: int = 0
    error: str = ""


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode


def read_stream(
    number: int,
    max_tokens: int,
    sent_ns: int,
    at_ns: Sequence[int],
    pieces: Sequence[bytes],
    ended: bool,
) -> SeenStream:
    """The stream whose answer came in these pieces at these times.

    Reasoning counts as text, in the order in which it comes.
    """
    seen = SeenStream(number, max_tokens, sent_ns, [], ended)
    parser = SseParser()
    try:
        for at, part in _body(at_ns, pieces):
            for event in parser.feed(part):
                if event.data != DONE:
                    _take(seen, at, event.data)
    except (msgspec.MsgspecError, ValueError) as error:
        seen.error = f"not an event: {error}"
    return seen


def _take(seen: SeenStream, at_ns: int, data: bytes) -> None:
    event = _decode(data)
    if event.error is not None:
        seen.error = error_message(event.error)
    text = ""
    for choice in event.choices[:1]:
        seen.finish = choice.finish_reason or seen.finish
        delta = choice.delta
        text = choice.text or ""
        if delta is not None:
            reasoning = delta.reasoning_content or delta.reasoning or ""
            text = reasoning + (delta.content or "")
    if text:
        seen.chunks.append(SeenChunk(at_ns, text))
    else:
        seen.empty_events += 1


def _body(at_ns: Sequence[int], pieces: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Parts of the body, each with the time at which its last byte came."""
    data = b"".join(pieces)
    ends: list[int] = []
    for piece in pieces:
        ends.append(len(piece) + (ends[-1] if ends else 0))
    head, mark, _ = data.partition(_HEAD_END)
    if not mark:
        return
    start = len(head) + len(mark)
    if b"transfer-encoding: chunked" not in head.lower():
        for at, end in zip(at_ns, ends, strict=True):
            if end > start:
                yield at, data[start:end]
                start = end
        return
    while (line_end := data.find(b"\r\n", start)) >= 0:
        size = int(data[start:line_end].partition(b";")[0], 16)
        stop = line_end + 2 + size
        if not size or stop > len(data):
            return
        yield at_ns[bisect_right(ends, stop - 1)], data[line_end + 2 : stop]
        start = stop + 2
