"""What a process counts during a run, looked at at even distances, in bounded memory."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

import msgspec

from detokbench.live.schedule import now_ns

SAMPLE_S = 0.05
HEARTBEAT_S = 0.01
_KEPT = 1 << 16


class Sample(msgspec.Struct, array_like=True):
    """Totals of one process since the run began, at a time of the shared clock.

    ``ids``: given out by the engine, or decoded. ``delivered``: taken by readers or written.
    ``chunks``: taken by readers or written. ``gap_ns`` and ``gap_ids`` add up the gaps between the
    chunks of the sampled streams and the ids that came with them. ``lag_ns`` is the age of the
    step that was worked on last, ``cpu_ns`` the CPU time of the process since it started.
    """

    at_ns: int
    steps: int = 0
    ids: int = 0
    delivered: int = 0
    chunks: int = 0
    gap_ns: int = 0
    gap_ids: int = 0
    lag_ns: int = 0
    cpu_ns: int = 0


def is_sampled(request: int, batch: int) -> bool:
    """Whether a request is one of the about eight at a time whose chunks are looked at."""
    return request % max(batch // 8, 1) == 0


class Counters:
    """Totals so far; see ``Sample``. ``late_ns`` is the longest that a heartbeat was late."""

    __slots__ = ("chunks", "delivered", "gap_ids", "gap_ns", "ids", "lag_ns", "late_ns", "steps")

    def __init__(self) -> None:
        self.steps = self.ids = self.delivered = self.chunks = 0
        self.gap_ns = self.gap_ids = self.lag_ns = self.late_ns = 0

    def sample(self) -> Sample:
        """The totals now."""
        return Sample(
            now_ns(), self.steps, self.ids, self.delivered, self.chunks, self.gap_ns,
            self.gap_ids, self.lag_ns, time.process_time_ns(),
        )  # fmt: skip


class Window:
    """The part of a run that is judged: from the end of the warm-up to the end of the schedule.

    It is set by the first step's time of emission, so that all processes have the same one.
    """

    __slots__ = ("_length_ns", "_warm_up_ns", "begin_ns", "end_ns")

    def __init__(self, warm_up_s: float, length_s: float) -> None:
        self._warm_up_ns = round(warm_up_s * 1e9)
        self._length_ns = round(length_s * 1e9)
        self.begin_ns = self.end_ns = 0

    def see(self, emitted_ns: int) -> None:
        """Take the first step's time; later ones change nothing."""
        if not self.end_ns:
            self.begin_ns = emitted_ns + self._warm_up_ns
            self.end_ns = emitted_ns + self._length_ns

    def holds(self, at_ns: int) -> bool:
        """Whether something at this time counts."""
        return self.begin_ns <= at_ns <= self.end_ns


class Reservoir:
    """Values seen, all of them up to a limit, an even draw beyond it (Vitter's algorithm R)."""

    __slots__ = ("_rng", "seen", "values")

    def __init__(self) -> None:
        self.values: list[tuple[int, int]] = []
        self.seen = 0
        self._rng = random.Random(0)

    def add(self, value: int, weight: int = 1) -> None:
        """``weight`` says how often the value counts: a gap per token, once for each of its ids."""
        self.seen += 1
        if len(self.values) < _KEPT:
            self.values.append((value, weight))
        elif (place := self._rng.randrange(self.seen)) < _KEPT:
            self.values[place] = (value, weight)


async def keep_time(counters: Counters, send: Callable[[Sample], None]) -> None:
    """Send a sample every 50 ms, and see how long the loop was kept from waking this task."""
    loop = asyncio.get_running_loop()
    next_sample = loop.time()
    while True:
        due = loop.time() + HEARTBEAT_S
        if loop.time() >= next_sample:
            send(counters.sample())
            next_sample += SAMPLE_S
        await asyncio.sleep(due - loop.time())
        counters.late_ns = max(counters.late_ns, round((loop.time() - due) * 1e9))
