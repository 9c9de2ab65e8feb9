"""The longest time that an event loop was blocked, seen by a task that wants to wake each ms."""

from __future__ import annotations

import asyncio
from time import perf_counter
from types import TracebackType

PERIOD_S = 0.001


class Heartbeat:
    """An asynchronous context. ``longest_s`` is the longest gap between wake-ups less the period.

    An idle loop shows a little too, since timers wake late: ``idle_s`` says how much.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._last = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Heartbeat:
        self._last = perf_counter()
        self._task = asyncio.get_running_loop().create_task(self._beat())
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._look()  # a loop that was blocked until now has not let it wake

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            self._look()

    def _look(self) -> None:
        now = perf_counter()
        self.longest_s = max(self.longest_s, now - self._last - PERIOD_S)
        self._last = now


async def idle_s(seconds: float) -> float:
    """What the heartbeat shows on a loop that has nothing to do."""
    async with Heartbeat() as heartbeat:
        await asyncio.sleep(seconds)
    return heartbeat.longest_s
