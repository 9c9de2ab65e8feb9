"""vLLM's ``process_outputs``: rows of a slice become text, and chunks for their readers.

After vLLM 0.33.0 (v1/engine/output_processor.py, ``OutputProcessor`` and
``RequestState.make_request_output``): ids are decoded at every step whatever the stream interval;
a chunk is made for the first id, then once ``interval`` ids are unsent, and at the end.
"""

from __future__ import annotations

from detokbench.live.collector import Chunk, Collector
from detokbench.live.counting import Counters
from detokbench.live.messages import RowOutput
from detokbench.live.readers import Streams
from detokbench.live.row_texts import OneByOne


class _Request:
    """One request of the front end: where its chunks go, and what is not in one yet."""

    __slots__ = ("collector", "first_ns", "has_sent", "ids", "text")

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.has_sent = False
        self.text = ""
        self.ids = 0
        self.first_ns = 0


class OutputProcessor:
    """Holds the state of every open request. ``chunks_put`` counts chunks before merging."""

    def __init__(
        self, texts: OneByOne, streams: Streams, interval: int, counters: Counters
    ) -> None:
        self._texts = texts
        self._streams = streams
        self._interval = interval
        self._counters = counters
        self._open: dict[int, _Request] = {}
        self.chunks_put = 0
        self.dropped_ids = 0

    def process(self, rows: list[RowOutput], emitted_ns: int) -> list[int]:
        """Take a slice of one step; the requests that a stop string ended, to be aborted."""
        aborts: list[int] = []
        take = self._texts.take
        for row in rows:
            taken = take(row)
            ids = len(row.new_ids)
            self._counters.ids += ids
            if taken is None:
                self._drop(ids)
                continue
            if row.prompt is not None:
                self._open[row.request] = _Request(self._streams.open(row.request))
            text, finish = taken
            self._put(self._open[row.request], text, ids, emitted_ns, finish)
            if finish is not None:
                del self._open[row.request]
                if row.finish is None:
                    aborts.append(row.request)
        return aborts

    def _drop(self, ids: int) -> None:
        """Ids of a request that has ended here count as delivered: nobody waits for them."""
        self.dropped_ids += ids
        self._counters.delivered += ids

    def _put(
        self, request: _Request, text: str, ids: int, emitted_ns: int, finish: str | None
    ) -> None:
        if request.ids == 0:
            request.first_ns = emitted_ns
        request.ids += ids
        if finish is None and request.has_sent and request.ids < self._interval:
            request.text += text
            return
        chunk = Chunk(request.text + text, request.ids, emitted_ns, finish)
        chunk.first_ns = request.first_ns
        request.has_sent = True
        request.text, request.ids = "", 0
        self.chunks_put += 1
        request.collector.put(chunk)
