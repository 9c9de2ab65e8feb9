"""The engine's clock: step i is due at ``start + i·T``, whatever became of the steps before.

A late step does not shift the next one. Where one is late by more than T, those after it follow
at once until the schedule is met again, as far as the engine's own work allows.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable

from detokbench.errors import DetokbenchError

_PR_SET_TIMERSLACK = 29
# A step counts as late beyond this: a sleeping process wakes this much after its time now and then.
LATE_NS = 200_000

Clock = Callable[[], int]
Sleep = Callable[[float], None]

now_ns: Clock = time.perf_counter_ns


def check_shared_clock() -> None:
    """Raises DetokbenchError where times of two processes cannot be compared.

    ``perf_counter`` must read one clock for the whole machine: CLOCK_MONOTONIC on Linux,
    mach_absolute_time on macOS.
    """
    how = time.get_clock_info("perf_counter").implementation
    if not any(name in how for name in ("CLOCK_MONOTONIC", "mach_absolute_time")):
        raise DetokbenchError(f"processes here do not share a clock ({how}): no delay can be told")


def wake_sharply() -> None:
    """On Linux: let this thread's sleeps end within a microsecond instead of 50."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1000)


class Schedule:
    """An absolute schedule, and how well it was kept.

    ``steps`` counts the steps begun, ``late_steps`` those that began more than ``LATE_NS`` after
    their time; ``drift_ns`` is how late the last one began, ``worst_ns`` the latest of all.
    """

    def __init__(
        self,
        step_ns: int,
        clock: Clock = now_ns,
        sleep: Sleep = time.sleep,
        start: int | None = None,
    ) -> None:
        """``step_ns`` is T_step; step 0 is due at ``start``, by default now."""
        self.step_ns = step_ns
        self._clock = clock
        self._sleep = sleep
        self.start = clock() if start is None else start
        self.steps = 0
        self.late_steps = 0
        self.drift_ns = 0
        self.worst_ns = 0

    def due(self, step: int) -> int:
        """When a step is due, in ns of the clock."""
        return self.start + step * self.step_ns

    def wait(self) -> int:
        """Sleep until the next step is due, if it is not yet; returns the time it begins."""
        due = self.due(self.steps)
        now = self._clock()
        while now < due:
            self._sleep((due - now) * 1e-9)
            now = self._clock()
        self.steps += 1
        self.drift_ns = now - due
        self.late_steps += self.drift_ns > LATE_NS
        self.worst_ns = max(self.worst_ns, self.drift_ns)
        return now
