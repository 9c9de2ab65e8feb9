"""Between the front end's loop and the reader of one stream: unread chunks merge.

After vLLM 0.33.0 (v1/engine/output_processor.py, ``RequestOutputCollector``); SGLang's front end
does the same with its list of pending outputs (``_coalesce_streaming_chunks``).
"""

from __future__ import annotations

import asyncio


class Chunk:
    """Text for the reader of one stream, of ``ids`` ids.

    ``first_ns`` and ``last_ns`` are when the engine emitted the oldest and the newest of them.
    """

    __slots__ = ("finish", "first_ns", "ids", "last_ns", "text")

    def __init__(self, text: str, ids: int, emitted_ns: int, finish: str | None = None) -> None:
        self.text = text
        self.ids = ids
        self.first_ns = emitted_ns
        self.last_ns = emitted_ns
        self.finish = finish

    def add(self, later: Chunk) -> None:
        """Take in the chunk that follows this one."""
        self.text += later.text
        self.ids += later.ids
        self.last_ns = later.last_ns
        self.finish = later.finish


class Collector:
    """One place for what the reader has not taken; what is put while it is taken joins it."""

    __slots__ = ("_chunk", "_ready")

    def __init__(self) -> None:
        self._chunk: Chunk | None = None
        self._ready = asyncio.Event()

    def put(self, chunk: Chunk) -> bool:
        """Leave a chunk for the reader; False where it was merged into one that still lay there."""
        if self._chunk is None:
            self._chunk = chunk
            self._ready.set()
            return True
        self._chunk.add(chunk)
        return False

    def get_nowait(self) -> Chunk | None:
        """What lies there, if anything does."""
        chunk = self._chunk
        if chunk is not None:
            self._chunk = None
            self._ready.clear()
        return chunk

    async def get(self) -> Chunk:
        """Wait until something lies there, and take it."""
        while (chunk := self.get_nowait()) is None:
            await self._ready.wait()
        return chunk
