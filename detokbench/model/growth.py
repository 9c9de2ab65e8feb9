"""How a cost grows with a length: the power of it, and its fixed, straight and square parts.

A loop that copies ever longer slices makes a number of turns that grows with the length and copies
characters that grow with its square. Which of the two is seen depends on the length: a power
between 0 and 2 is what measured points give, and the parts say why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

_POWERS = (0, 1, 2)


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
class GrowthParts:
    """``cost = fixed + per_unit * length + per_square * length**2``, no part below zero."""

    fixed: float
    per_unit: float
    per_square: float

    @property
    def overtaking_length(self) -> float:
        """The length from which the square part outweighs the straight one; infinity for never."""
        return self.per_unit / self.per_square if self.per_square > 0 else math.inf


def fitted_parts(lengths: Sequence[float], costs: Sequence[float]) -> GrowthParts:
    """The parts by least squares of the relative errors, without those that would be negative.

    Raises ValueError for fewer than two lengths.
    """
    different = len(set(lengths))
    if different < 2:
        raise ValueError("parts of a growth need two different lengths")
    best, least = GrowthParts(0, 0, 0), math.inf
    for size in range(1, min(different, len(_POWERS)) + 1):
        for powers in combinations(_POWERS, size):
            columns = [
                [length**power / cost for length, cost in zip(lengths, costs, strict=True)]
                for power in powers
            ]
            factors = _least_squares(columns)
            error = sum((_dot(factors, row) - 1) ** 2 for row in zip(*columns, strict=True))
            if min(factors) >= 0 and error < least:
                by_power = dict(zip(powers, factors, strict=True))
                best, least = GrowthParts(*(by_power.get(p, 0.0) for p in _POWERS)), error
    return best


def _least_squares(columns: Sequence[Sequence[float]]) -> list[float]:
    """Factors with which the columns add up to ones best: normal equations, by elimination."""
    rows = [[*(_dot(a, b) for b in columns), sum(a)] for a in columns]
    size = len(rows)
    for i in range(size):
        for j in range(i + 1, size):
            ratio = rows[j][i] / rows[i][i]
            rows[j] = [y - ratio * x for x, y in zip(rows[i], rows[j], strict=True)]
    factors = [0.0] * size
    for i in reversed(range(size)):
        known = _dot(rows[i][i + 1 : size], factors[i + 1 :])
        factors[i] = (rows[i][size] - known) / rows[i][i]
    return factors


def _dot(xs: Sequence[float], ys: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(xs, ys, strict=True))
