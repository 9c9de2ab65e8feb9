"""Who takes chunks from the collectors: tasks in the front end, in place of HTTP responses."""

from __future__ import annotations

import asyncio
from typing import Protocol

from detokbench.live.collector import Collector
from detokbench.live.counting import is_sampled
from detokbench.live.recording import Recorder, StreamRecord
from detokbench.live.schedule import now_ns


class Streams(Protocol):
    """The reading side of a front end."""

    def open(self, number: int) -> Collector:
        """Where the chunks of a request that begins go."""

    async def all_read(self) -> None:
        """Wait until every stream that began has been read to its end; close the others."""


class Readers:
    """One task for each request, as vLLM's ``generate`` is one."""

    def __init__(self, batch: int, recorder: Recorder) -> None:
        self._batch = batch
        self._recorder = recorder
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, number: int) -> Collector:
        collector = Collector()
        sampled = is_sampled(number, self._batch)
        read = self._read_sampled(number, collector) if sampled else self._read(collector)
        task = asyncio.create_task(read)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return collector

    async def all_read(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _read(self, collector: Collector) -> None:
        counters = self._recorder.counters
        finish = None
        while finish is None:
            chunk = collector.get_nowait() or await collector.get()
            finish = chunk.finish
            counters.chunks += 1
            counters.delivered += chunk.ids

    async def _read_sampled(self, number: int, collector: Collector) -> None:
        counters = self._recorder.counters
        record = StreamRecord(number, self._recorder)
        finish = None
        while finish is None:
            chunk = collector.get_nowait() or await collector.get()
            finish = chunk.finish
            counters.chunks += 1
            counters.delivered += chunk.ids
            record.take(now_ns(), chunk.text, chunk.ids, chunk.first_ns, finish)
