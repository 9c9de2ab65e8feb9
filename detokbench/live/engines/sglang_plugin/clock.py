"""The engine's clock here: steps at absolute times, whatever became of the steps before.

The same rule as detokbench.live.schedule, with a pace that changes while it runs.
"""

from __future__ import annotations

import ctypes
import sys
from array import array

# As in detokbench.live.schedule: a sleeping process wakes this much after its time now and then.
LATE_NS = 200_000
HELD_STEPS = 1 << 18
_PR_SET_TIMERSLACK = 29


def wake_sharply() -> None:
    """On Linux: let this thread's sleeps end within a microsecond instead of 50."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1000)


class StepClock:
    """When steps are due, how well that was kept, and when each was emitted.

    Times are ns of ``time.perf_counter_ns``. ``steps`` counts the steps begun, ``late_steps``
    those begun more than ``LATE_NS`` after their time; ``worst_ns`` is the latest since it was
    last taken. The emission times of the last ``HELD_STEPS`` steps are held.
    """

    def __init__(self, step_ns: int, now_ns: int) -> None:
        self.steps = 0
        self.late_steps = 0
        self._worst_ns = 0
        self._emitted = array("q", bytes(8 * HELD_STEPS))
        self.pace(step_ns, now_ns)

    def pace(self, step_ns: int, now_ns: int) -> None:
        """From now on one step every ``step_ns``; what the old pace was behind is forgotten."""
        if step_ns <= 0:
            raise ValueError(f"t_step_ns must be above 0, not {step_ns}")
        self.step_ns = step_ns
        self._first_due = now_ns + step_ns
        self._first_step = self.steps

    def due(self) -> int:
        """When the next step is due."""
        return self._first_due + (self.steps - self._first_step) * self.step_ns

    def begin(self, now_ns: int) -> None:
        """The next step begins."""
        late = now_ns - self.due()
        self.late_steps += late > LATE_NS
        self._worst_ns = max(self._worst_ns, late)
        self.steps += 1

    def emitted(self, now_ns: int) -> None:
        """The ids of the step that began last leave now."""
        self._emitted[(self.steps - 1) % HELD_STEPS] = now_ns

    def take_worst(self) -> int:
        """The latest beginning since this was last asked, in ns."""
        worst, self._worst_ns = self._worst_ns, 0
        return worst

    def first_held(self) -> int:
        """The oldest step whose time is still held."""
        return max(0, self.steps - HELD_STEPS)

    def times(self, since: int) -> tuple[int, list[int]]:
        """Emission times of the steps from ``since`` on, and the first that is still held."""
        first = max(since, self.first_held())
        return first, [self._emitted[step % HELD_STEPS] for step in range(first, self.steps)]
