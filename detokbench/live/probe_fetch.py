"""One streamed request: its bytes, each read with the time at which it came, and how it ended.

Nothing is parsed while bytes come, but for the distance to the last line end: that bounds what a
line can take.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from detokbench.live.probe_url import interface_path
from detokbench.live.sse import MAX_LINE_BYTES

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
_DONE_GRACE_S = 2.0
"""How long after ``[DONE]`` the end of the answer is waited for."""
_DONE_LINE = b"data: [DONE]"


@dataclass
class Raw:
    """A request and what came of it, not yet parsed. Times are those of ``perf_counter``."""

    prompt: str
    sent_s: float
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    status: int | None = None
    content_type: str = ""
    ended: Ended = "end"
    why: str = ""
    ended_s: float = 0.0
    size: int = 0
    """Bytes that came."""
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
    end_s = deadline.when()
    line = 0
    is_done = False
    async for data in response.content.iter_any():
        raw.reads.append((perf_counter(), data))
        raw.size += len(data)
        line_end = max(data.rfind(b"\n"), data.rfind(b"\r"))
        line = line + len(data) if line_end < 0 else len(data) - line_end - 1
        if line > limits.line_bytes or raw.size > limits.stream_bytes:
            raw.ended = "line" if line > limits.line_bytes else "bytes"
            return
        if _DONE_LINE in data[-32:]:
            is_done = True
            deadline.reschedule(loop.time() + _DONE_GRACE_S)
        elif is_done:
            is_done = False
            deadline.reschedule(end_s)


async def _read_some(response: ClientResponse, raw: Raw) -> None:
    """An answer that is no stream, or its beginning."""
    parts = []
    async for data in response.content.iter_any():
        parts.append(data)
        raw.size += len(data)
        if raw.size > _MOST_OTHER_BYTES:
            response.close()
            break
    raw.reads.append((perf_counter(), b"".join(parts)))


def _ending(error: Exception, raw: Raw) -> tuple[Ended, str]:
    """What an error of the client says about the server."""
    import aiohttp

    if isinstance(error, TimeoutError):
        last = raw.reads[-1][1] if raw.reads else b""
        return ("end", "") if _DONE_LINE in last[-32:] else ("time", "")
    if isinstance(error, aiohttp.ClientConnectorError):
        return "refused", error.os_error.strerror or type(error.os_error).__name__
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
        return "closed", "" if raw.reads else "closed before an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "closed", ""
    if isinstance(error, aiohttp.ClientError | ValueError):
        # An error's own text may have the whole address in it.
        says = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
        return "bad-http", f"{type(error).__name__}: {says}".splitlines()[0]
    raise error
