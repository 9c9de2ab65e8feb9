"""SGLang's ``_handle_batch_output``: texts of a message become chunks for their readers."""

from __future__ import annotations

import asyncio

from detokbench.live.collector import Chunk, Collector
from detokbench.live.counting import Counters
from detokbench.live.messages import StepText
from detokbench.live.readers import Streams

NOTIFY_SIZE = 16
"""Rows after which the loop gets a turn (``batch_notify_size``)."""


class TextHandler:
    """Holds where the chunks of every open request go."""

    def __init__(self, streams: Streams, counters: Counters) -> None:
        self._streams = streams
        self._counters = counters
        self._open: dict[int, Collector] = {}
        self.chunks_put = 0

    def __len__(self) -> int:
        """Requests with a state here."""
        return len(self._open)

    async def take(self, message: StepText) -> None:
        """Hand out one message."""
        opened = self._open
        for position, row in enumerate(message.rows, 1):
            collector = opened.get(row.request)
            if collector is None:
                collector = opened[row.request] = self._streams.open(row.request)
            if row.finish is not None:
                del opened[row.request]
            collector.put(Chunk(row.text, row.ids, message.emitted_ns, row.finish))
            self.chunks_put += 1
            self._counters.ids += row.ids
            if position % NOTIFY_SIZE == 0:
                await asyncio.sleep(0)
