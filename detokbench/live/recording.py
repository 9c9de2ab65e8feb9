"""What is seen of the sampled streams, where their readers are.

``itl.py`` defines the gaps and the ITL per token. Here they are taken as chunks come, in whole ns:
what is left over where a gap is spread over its ids is dropped.
"""

from __future__ import annotations

from detokbench.live.counting import Counters, Reservoir, Window
from detokbench.live.plan import Stream
from detokbench.live.texts import MOST_STREAMS


class Recorder:
    """Gaps and delays of all sampled streams of a process, and their texts."""

    def __init__(self, window: Window, counters: Counters) -> None:
        self.window = window
        self.counters = counters
        self.itl = Reservoir()
        self.gaps = Reservoir()
        self.delays = Reservoir()
        self.streams: list[Stream] = []


class StreamRecord:
    """One sampled stream, chunk by chunk."""

    __slots__ = ("_chunk_ns", "_filled_ns", "_number", "_recorder", "_texts")

    def __init__(self, number: int, recorder: Recorder) -> None:
        self._number = number
        self._recorder = recorder
        self._texts: list[str] = []
        self._chunk_ns = 0
        self._filled_ns = 0

    def take(self, at_ns: int, text: str, ids: int, first_ns: int, finish: str | None) -> None:
        """A chunk that came at ``at_ns``; the engine had the oldest of its ids at ``first_ns``."""
        recorder = self._recorder
        counts = recorder.window.holds(at_ns)
        self._texts.append(text)
        if self._chunk_ns and counts:
            recorder.gaps.add(at_ns - self._chunk_ns)
        self._chunk_ns = at_ns
        if ids:
            self._take_ids(at_ns, ids, first_ns, counts)
        if finish is not None and len(recorder.streams) < MOST_STREAMS:
            recorder.streams.append(Stream(self._number, "".join(self._texts), finish))

    def _take_ids(self, at_ns: int, ids: int, first_ns: int, counts: bool) -> None:
        recorder = self._recorder
        if self._filled_ns:
            gap = at_ns - self._filled_ns
            recorder.counters.gap_ns += gap
            recorder.counters.gap_ids += ids
            if counts:
                recorder.itl.add(gap // ids, ids)
        if counts:
            recorder.delays.add(at_ns - first_ns)
        self._filled_ns = at_ns
