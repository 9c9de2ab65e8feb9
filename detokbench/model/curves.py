"""Seconds a step as a function of the batch: a line, or measured points with lines between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

SecondsAt = Callable[[float], float]
"""Batch (sequences a step) → seconds a step. ``Line``, ``Measured`` and any function fit."""


@dataclass(frozen=True, slots=True)
class Line:
    """``fixed_s`` a step and ``per_sequence_s`` more for each sequence in it."""

    fixed_s: float
    per_sequence_s: float

    def __call__(self, batch: float) -> float:
        """Seconds of a step of ``batch`` sequences."""
        return self.fixed_s + self.per_sequence_s * batch


@dataclass(frozen=True, slots=True)
class Measured:
    """``seconds[i]`` a step at ``batches[i]``, straight lines between, the end lines prolonged.

    The last line runs from the last point at half the largest batch or below: points that lie
    closer together than that would turn their noise into a slope.
    """

    batches: tuple[float, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raises ValueError for fewer than two points, or batches that do not rise."""
        if len(self.batches) != len(self.seconds) or len(self.batches) < 2:
            raise ValueError("a measured curve needs at least two points, one time for each batch")
        if any(low >= high for low, high in pairwise(self.batches)):
            raise ValueError("the batches of a measured curve must rise")

    @classmethod
    def from_points(cls, seconds_at: Mapping[int, float]) -> Measured:
        """Points in any order, keyed by batch. Raises ValueError for fewer than two."""
        points = sorted(seconds_at.items())
        return cls(tuple(batch for batch, _ in points), tuple(seconds for _, seconds in points))

    def __call__(self, batch: float) -> float:
        """Seconds of a step of ``batch`` sequences."""
        last = len(self.batches) - 1
        if batch > self.batches[last]:
            start = max(bisect_right(self.batches, self.batches[last] / 2) - 1, 0)
            return self._on_line(start, last, batch, last)
        left = min(max(bisect_right(self.batches, batch) - 1, 0), last - 1)
        return self._on_line(left, left + 1, batch, left)

    def _on_line(self, start: int, stop: int, batch: float, through: int) -> float:
        """The line with the slope from point ``start`` to ``stop``, through point ``through``."""
        rise_s = self.seconds[stop] - self.seconds[start]
        slope_s = rise_s / (self.batches[stop] - self.batches[start])
        return self.seconds[through] + slope_s * (batch - self.batches[through])
