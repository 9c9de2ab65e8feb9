"""One stream of a script on its way out: its frames when they are due, or what goes wrong instead.

Written to the connection by hand, since a web framework would not let a line be cut or a
connection be dropped.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from time import monotonic

from detokbench.live.canned_script import Script, frames

_PIECE = b"x" * 65536
_FOREVER_S = 3600


@dataclass
class Playing:
    """One answer to one request."""

    script: Script
    chat: bool
    stop: list[str]
    writer: asyncio.StreamWriter
    started_s: float = field(default_factory=monotonic)

    async def play(self) -> bool:
        """Send the stream. Returns whether the connection may be used again."""
        behaviour = self.script.behaviour
        kind = "text/html" if behaviour == "html" else "text/event-stream; charset=utf-8"
        self.writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        if behaviour == "html":
            await self._write(b"<html><body>Please log in</body></html>")
        elif behaviour == "long-line":
            await self._long_line()
        elif behaviour == "endless":
            await self._endless()
        elif behaviour != "nothing" and not await self._frames():
            self.writer.transport.abort()
            return False
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()
        return True

    async def _frames(self) -> bool:
        """Send the frames of the script, up to where it goes wrong; False for an end too soon."""
        middle = len(self.script.tokens) // self.script.per_chunk // 2
        for number, frame in enumerate(frames(self.script, self.chat, self.stop)):
            await asyncio.sleep(max(0.0, self.started_s + frame.due_s - monotonic()))
            data = f"data: {frame.data}\n\n".encode()
            if number != middle or self.script.behaviour == "stream":
                await self._write(data)
            elif self.script.behaviour.startswith("close-"):
                await self._break_off(data)
                return False
            else:
                await self._go_wrong()
                if self.script.behaviour == "error-frame":
                    return True
        return True

    async def _break_off(self, data: bytes) -> None:
        """Send half of a frame, or nothing of it."""
        if self.script.behaviour == "close-mid-line":
            await self._write(data[: len(data) // 2])
        await asyncio.sleep(0.01)  # an abort would also drop what is not sent yet

    async def _go_wrong(self) -> None:
        """Send, or leave unsent, something in place of the frame in the middle."""
        if self.script.behaviour == "stall":
            await asyncio.sleep(_FOREVER_S)
        if self.script.behaviour == "bad-json":
            await self._write(b'data: {"choices": [{"text": \n\n')
        if self.script.behaviour == "error-frame":
            await self._write(b'data: {"error": {"message": "the engine died"}}\n\n')

    async def _long_line(self) -> None:
        await self._write(b'data: {"choices": [{"index": 0, "text": "')
        for _ in range(self.script.long_line_bytes // len(_PIECE) + 1):
            await self._write(_PIECE)
        await self._write(b'"}]}\n\n')

    async def _endless(self) -> None:
        text = {"delta": {"content": " and"}} if self.chat else {"text": " and"}
        data = f"data: {json.dumps({'choices': [{'index': 0, **text}]})}\n\n".encode()
        while True:
            await self._write(data)
            await asyncio.sleep(max(self.script.pace_s, 0.0))

    async def _write(self, data: bytes) -> None:
        """One piece, or several where the script cuts them, each a chunk of HTTP of its own."""
        size = self.script.cut_bytes or len(data)
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self.writer.drain()
            if self.script.cut_bytes:
                await asyncio.sleep(0)
