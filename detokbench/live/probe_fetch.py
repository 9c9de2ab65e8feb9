"""One streamed request: its bytes, with the times at which they came, and how it ended.

Nothing is parsed while bytes come, but for line ends: they bound what a line can take, and tell
that ``[DONE]`` has come.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from detokbench.live.probe_url import interface_path
from detokbench.live.sse import DONE, MAX_LINE_BYTES

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

Ended = Literal["end", "closed", "time", "bytes", "line", "refused", "bad-http"]
MOST_STREAM_BYTES = 64 << 20
"""Kept of one stream at most."""
_MOST_TOKEN_BYTES = 16 << 10
"""Room for the frame of a token; one with 20 log-probabilities takes a quarter of it."""
MOST_OPEN_BYTES = 1 << 30
"""Kept of all streams that are open at one time."""
_MOST_OTHER_BYTES = 4 << 20
_NO_MORE_FILES = {errno.EMFILE, errno.ENFILE}
_DONE_GRACE_S = 2.0
"""How long after the first ``[DONE]`` the end of the answer is waited for."""
_DONE_LINE = re.compile(rb"[\r\n]data: ?\[DONE\] *[\r\n]")
_DONE_BYTES = 32
"""Such a line and the end of the one before it, cut anywhere, are within so many bytes."""
_LINE_COST, _READ_COST = 128, 128
"""Bytes that a line takes once it is parsed, and a read beside its data."""


@dataclass
class Raw:
    """A request and what came of it, not yet parsed. Times are those of ``perf_counter``."""

    prompt: str
    sent_s: float
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    """Bytes up to a read with a line end in it, and when that read came."""
    status: int | None = None
    content_type: str = ""
    ended: Ended = "end"
    why: str = ""
    ended_s: float = 0.0
    size: int = 0
    """Bytes that came."""
    kept_bytes: int = 0
    """What they take in memory, parsed or not."""
    last_s: float = 0.0
    """When the last of them came."""
    done: bool = False
    """Whether ``[DONE]`` came, in a line of its own."""
    path: str = ""
    """The interface's part of what was asked for, such as ``/v1/completions``."""


def stream_limit_bytes(concurrency: int, max_tokens: int) -> int:
    """What one of so many streams may take; never so little that a long line goes unnoticed."""
    enough = max(2 * MAX_LINE_BYTES, max_tokens * _MOST_TOKEN_BYTES)
    return min(enough, MOST_STREAM_BYTES, MOST_OPEN_BYTES // concurrency)


@dataclass(frozen=True)
class Limits:
    """What one request may take."""

    seconds: float
    stream_bytes: int
    """Lines and reads count too, for what they take in memory beside their bytes."""
    line_bytes: int = MAX_LINE_BYTES


async def fetch_stream(
    session: ClientSession, url: str, body: dict[str, Any], prompt: str, limits: Limits
) -> Raw:
    """Send a request and read the answer up to its end or to a limit. Raises nothing for either."""
    raw = Raw(prompt, sent_s=perf_counter(), path=interface_path(url))
    try:
        async with asyncio.timeout(limits.seconds) as deadline:
            async with session.post(url, json=body, allow_redirects=False) as response:
                raw.status = response.status
                raw.content_type = response.content_type
                if response.status == 200 and raw.content_type == "text/event-stream":
                    await _read(response, raw, limits, deadline)
                else:
                    await _read_some(response, raw)
                if raw.ended != "end":
                    response.close()
    except Exception as error:
        raw.ended, raw.why = _ending(error, raw)
    raw.ended_s = perf_counter()
    return raw


async def _read(
    response: ClientResponse, raw: Raw, limits: Limits, deadline: asyncio.Timeout
) -> None:
    """Read the stream as it comes; ``raw`` has all of it even where an error ends the reading."""
    loop = asyncio.get_running_loop()
    open_line = bytearray()  # no event ends in it, so that when it came is of no interest
    before = b"\n"
    line = 0
    try:
        async for data in response.content.iter_any():
            raw.last_s = perf_counter()
            line_end = _take(raw, open_line, data)
            line = line + len(data) if line_end < 0 else len(data) - line_end - 1
            if line > limits.line_bytes or raw.kept_bytes > limits.stream_bytes:
                raw.ended = "line" if line > limits.line_bytes else "bytes"
                return
            if not raw.done:
                recent = before + data
                before = recent[-_DONE_BYTES:]
                if DONE in recent and _DONE_LINE.search(recent):
                    raw.done = True
                    deadline.reschedule(loop.time() + _DONE_GRACE_S)
    finally:
        if open_line:
            raw.reads.append((raw.last_s, bytes(open_line)))


def _take(raw: Raw, open_line: bytearray, data: bytes) -> int:
    """Keep what came, with its time where a line ends in it; the last place of a line end, or -1.

    A line that comes in many reads takes no more than one that comes in one.
    """
    raw.size += len(data)
    raw.kept_bytes += len(data)
    line_end = max(data.rfind(b"\n"), data.rfind(b"\r"))
    if line_end < 0:
        open_line += data
        return line_end
    raw.reads.append((raw.last_s, bytes(open_line) + data if open_line else data))
    open_line.clear()
    lines = max(data.count(b"\n"), data.count(b"\r"))
    raw.kept_bytes += lines * _LINE_COST + _READ_COST
    return line_end


async def _read_some(response: ClientResponse, raw: Raw) -> None:
    """An answer that is no stream, or its beginning."""
    data = await read_at_most(response, _MOST_OTHER_BYTES)
    raw.size = raw.kept_bytes = len(data)
    raw.last_s = perf_counter()
    raw.reads.append((raw.last_s, data))


async def read_at_most(response: ClientResponse, most_bytes: int) -> bytes:
    """A whole body; of one that is longer, its beginning, and the connection is closed."""
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > most_bytes:
            response.close()
            break
    return bytes(body)


def _ending(error: Exception, raw: Raw) -> tuple[Ended, str]:
    """What an error of the client says about the server."""
    import aiohttp

    if isinstance(error, TimeoutError):
        return ("end", "") if raw.done else ("time", "")
    if isinstance(error, aiohttp.ClientConnectorError):
        if error.os_error.errno in _NO_MORE_FILES:
            return "refused", f"on this side: {os.strerror(error.os_error.errno)}"
        return "refused", error.os_error.strerror or type(error.os_error).__name__
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
        return "closed", "" if raw.reads else "closed before an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "closed", ""
    if isinstance(error, aiohttp.ClientError | ValueError):
        # An error's own text may have the whole address in it.
        says = f": {error.message}" if isinstance(error, aiohttp.ClientResponseError) else ""
        return "bad-http", f"{type(error).__name__}{says}".splitlines()[0]
    raise error
