"""A line with an intercept through times of several N: the slope is the cost.

What the harness costs around the N, such as reading the clock, is the intercept and so does not
get into the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Line:
    """``time = intercept + slope * units``."""

    slope: float
    intercept: float


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Least squares through two or more points with different x. Raises ValueError otherwise."""
    if len(xs) != len(ys) or len(set(xs)) < 2:
        raise ValueError("a line needs points at two different x")
    mean_x = sum(xs) / len(xs)
    mean_y = sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    return Line(slope, mean_y - slope * mean_x)


def slope_through_medians(points: Sequence[tuple[float, Sequence[float]]]) -> Line:
    """Fit through ``(units, times)`` points, each at the median of its times.

    Medians first, so that one disturbed sample moves neither slope nor intercept. The unit of the
    slope is that of the times.
    """
    return fit_line([units for units, _ in points], [median(times) for _, times in points])
