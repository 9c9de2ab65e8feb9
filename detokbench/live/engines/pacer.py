"""Steps at a pace that can be changed, counted through all changes."""

from __future__ import annotations

import time

from detokbench.errors import DetokbenchError
from detokbench.live.schedule import Clock, Schedule, Sleep, now_ns


class Pacer:
    """The absolute schedule of ``live.schedule``, begun anew at each change of pace."""

    def __init__(self, t_step_ns: int, clock: Clock = now_ns, sleep: Sleep = time.sleep) -> None:
        """``t_step_ns`` is T_step until it is changed."""
        self._clock = clock
        self._sleep = sleep
        self._schedule = Schedule(t_step_ns, clock, sleep)
        self._steps_before = self._late_before = self._worst_ns = 0

    @property
    def next_due(self) -> int:
        """When the next step is due, in ns of the clock."""
        return self._schedule.due(self._schedule.steps)

    @property
    def steps(self) -> int:
        """Steps begun."""
        return self._steps_before + self._schedule.steps

    @property
    def late_steps(self) -> int:
        """Those that began late."""
        return self._late_before + self._schedule.late_steps

    def wait(self) -> int:
        """Sleep until the next step is due; returns the time it begins."""
        return self._schedule.wait()

    def change(self, t_step_ns: int) -> None:
        """The next step is due one new T_step after the last was, or now if that is past.

        Raises DetokbenchError for a step that takes no time.
        """
        if t_step_ns <= 0:
            raise DetokbenchError(f"a step of {t_step_ns} ns cannot be kept")
        old = self._schedule
        start = max(self._clock(), old.due(old.steps - 1) + t_step_ns)
        self._steps_before += old.steps
        self._late_before += old.late_steps
        self._worst_ns = max(self._worst_ns, old.worst_ns)
        self._schedule = Schedule(t_step_ns, self._clock, self._sleep, start)

    def take_worst_ns(self) -> int:
        """How late the latest step began since this was last asked, in ns."""
        worst = max(self._worst_ns, self._schedule.worst_ns)
        self._worst_ns = self._schedule.worst_ns = 0
        return worst
