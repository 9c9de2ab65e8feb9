"""When each step was emitted: the last quarter of a million of them."""

from __future__ import annotations

from array import array

from detokbench.live.engines.engine_plan import StepTimes

_HELD = 1 << 18


class EmissionTimes:
    """A ring of times in ns; the step that comes next is ``steps``."""

    def __init__(self, held: int = _HELD) -> None:
        """``held``: how many of the latest steps are kept."""
        self._times = array("q", bytes(8 * held))
        self._held = held
        self.steps = 0

    @property
    def first(self) -> int:
        """The oldest step whose time is still held."""
        return max(0, self.steps - self._held)

    def add(self, at_ns: int) -> None:
        """The next step was emitted at this time."""
        self._times[self.steps % self._held] = at_ns
        self.steps += 1

    def since(self, step: int) -> StepTimes:
        """The times of ``step`` and all after it, as far as they are held."""
        first = min(max(step, self.first), self.steps)
        times = self._times
        return StepTimes(first, [times[i % self._held] for i in range(first, self.steps)])
