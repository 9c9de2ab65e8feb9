"""How a cost grows with a length: the power of it, and a line with a square part.

A loop that copies ever longer slices makes a number of turns that grows with the length and copies
characters that grow with its square. Which of the two is seen depends on the length: a power
between 1 and 2 is what measured points give, and the two parts say why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def fitted_power(lengths: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent p of ``cost ~ length**p``: least squares on logarithms.

    Raises ValueError for fewer than two lengths, or values that are not above zero.
    """
    if len(set(lengths)) < 2 or min(*lengths, *costs) <= 0:
        raise ValueError("a power needs two different lengths, and costs above zero")
    xs, ys = [math.log(length) for length in lengths], [math.log(cost) for cost in costs]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return rise / sum((x - mean_x) ** 2 for x in xs)


@dataclass(frozen=True, slots=True)
class TwoParts:
    """``cost = per_unit * length + per_square * length**2``."""

    per_unit: float
    per_square: float

    @property
    def overtaking_length(self) -> float:
        """The length from which the square part is the larger one; infinity for never."""
        return self.per_unit / self.per_square if self.per_square > 0 else math.inf


def fitted_parts(lengths: Sequence[float], costs: Sequence[float]) -> TwoParts:
    """Both parts by least squares of the relative errors, neither of them below zero.

    Raises ValueError for fewer than two lengths.
    """
    if len(set(lengths)) < 2:
        raise ValueError("two parts need two different lengths")
    linear = [length / cost for length, cost in zip(lengths, costs, strict=True)]
    square = [length**2 / cost for length, cost in zip(lengths, costs, strict=True)]
    a, b, c = _dot(linear, linear), _dot(linear, square), _dot(square, square)
    determinant = a * c - b * b
    per_unit = (c * sum(linear) - b * sum(square)) / determinant
    per_square = (a * sum(square) - b * sum(linear)) / determinant
    if per_square < 0:
        return TwoParts(sum(linear) / a, 0.0)
    if per_unit < 0:
        return TwoParts(0.0, sum(square) / c)
    return TwoParts(per_unit, per_square)


def _dot(xs: Sequence[float], ys: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(xs, ys, strict=True))
