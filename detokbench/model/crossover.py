"""B*: the first batch at which the host needs longer for a step than the GPU.

The GPU's step grows with the batch too (KV reads and compute), so a host cost may stay below it
for ever: 'never' is an answer. As T_step = max(memory, compute) bends upwards, a host can also be
late at one batch and on time again at a larger one; B* is the first crossing, and says nothing
about what lies above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from detokbench.model.curves import Measured, SecondsAt

# Batches beyond this count as infinity: no roofline bends there any more.
_FAR_BATCH = 2.0**24
# Two times or slopes closer than this are equal: arithmetic noise must not make a host late.
_EQUAL = 1e-9
# Crossings are found to this relative width.
_WIDTH = 1e-12


class Answer(StrEnum):
    """What there is to say about a host and a GPU; exactly one of these holds."""

    CROSSES = "crosses"
    NEVER = "never"
    EXTRAPOLATED = "extrapolated"
    ALWAYS_LATE = "always late"
    DOES_NOT_FIT = "does not fit"


@dataclass(frozen=True, slots=True)
class Crossover:
    """B* and how it is known.

    ``batch`` is unrounded: the host is late above it. It is None for NEVER, 1 for ALWAYS_LATE, and
    the crossing that cannot be reached for DOES_NOT_FIT. ``limit`` is the last measured batch for
    EXTRAPOLATED and the largest batch in memory for DOES_NOT_FIT.
    """

    answer: Answer
    batch: float | None = None
    limit: float | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """For a table cell: ``224``, ``never``, ``beyond 512, by extrapolation 897``, …"""
        if self.answer is Answer.CROSSES:
            return f"{self.batch:.0f}"
        if self.answer is Answer.EXTRAPOLATED:
            return f"beyond {self.limit:.0f}, by extrapolation {self.batch:.0f}"
        if self.answer is Answer.DOES_NOT_FIT:
            return "does not fit in memory"
        return self.answer.value

    @property
    def order_batch(self) -> float:
        """The crossing as a number that sorts: infinity for never, 1 for always late."""
        return math.inf if self.batch is None else self.batch


def closed_form_batch(fixed_s: float, per_sequence_s: float, t_step_s: float) -> float:
    """B* of a host cost ``fixed_s + per_sequence_s·B`` against a constant T_step.

    Infinity where the host never gets there; below 1 where it is late from the start.
    """
    if per_sequence_s > 0:
        return (t_step_s - fixed_s) / per_sequence_s
    return math.inf if fixed_s <= t_step_s else 0.0


def crossover(
    host_s: SecondsAt, t_step_s: SecondsAt, *, largest_batch: float | None = None
) -> Crossover:
    """B* of a host against a GPU, both in seconds a step at a batch.

    ``host_s`` must be straight between measured points and ``t_step_s`` must bend upwards only
    (max(memory, compute) does), or be measured points itself. Where either is measured, a crossing
    beyond the shorter range is EXTRAPOLATED. ``largest_batch`` is what memory holds.
    """

    def lateness_s(batch: float) -> float:
        t_s = t_step_s(batch)
        return host_s(batch) - t_s - _EQUAL * abs(t_s)

    if lateness_s(1.0) > 0:
        reason = (
            f"one sequence takes {_ms(host_s(1.0))} on the host, {_ms(t_step_s(1.0))} on the GPU"
        )
        return Crossover(Answer.ALWAYS_LATE, 1.0, reason=reason)
    batch = _first_crossing(lateness_s, _corners(host_s, t_step_s))
    if batch is None:
        return Crossover(Answer.NEVER, reason=_why_never(host_s, t_step_s))
    if largest_batch is not None and batch > largest_batch:
        reason = (
            f"the crossing at {batch:.0f} lies above the {largest_batch:.0f} that fit in memory"
        )
        return Crossover(Answer.DOES_NOT_FIT, batch, largest_batch, reason)
    measured_to = _measured_to(host_s, t_step_s)
    if batch > measured_to:
        return Crossover(
            Answer.EXTRAPOLATED, batch, measured_to, f"measured up to {measured_to:.0f}"
        )
    return Crossover(Answer.CROSSES, batch)


def _corners(*curves: SecondsAt) -> list[float]:
    """Batches, from 1 up, between which every measured curve is straight."""
    measured = [batch for curve in curves if isinstance(curve, Measured) for batch in curve.batches]
    return sorted({1.0, *(float(batch) for batch in measured if batch > 1)})


def _measured_to(*curves: SecondsAt) -> float:
    return min(
        (curve.batches[-1] for curve in curves if isinstance(curve, Measured)), default=math.inf
    )


def _slope_s(curve: SecondsAt) -> float:
    """Seconds that one more sequence adds in the end."""
    return (curve(2 * _FAR_BATCH) - curve(_FAR_BATCH)) / _FAR_BATCH


def _why_never(host_s: SecondsAt, t_step_s: SecondsAt) -> str:
    host, gpu = (f"{_slope_s(curve) * 1e6:.3g} µs" for curve in (host_s, t_step_s))
    return f"each further sequence adds {host} on the host and {gpu} on the GPU"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _first_crossing(lateness_s: SecondsAt, corners: list[float]) -> float | None:
    """The first batch where lateness passes zero; it is at or below zero at the first corner.

    Between corners, and after the last one, lateness is a straight line less a curve that bends
    upwards: it has one peak, and one crossing on the way up to it.
    """
    for low, high in pairwise([*corners, _beyond(lateness_s, corners[-1])]):
        late = high if lateness_s(high) > 0 else _late_batch(lateness_s, low, high)
        if late is not None:
            return _root(lateness_s, low, late)
    return None


def _beyond(lateness_s: SecondsAt, last: float) -> float:
    """A batch that stands for infinity: late if the host is late in the end."""
    batch = max(_FAR_BATCH, 2 * last)
    if _slope_s(lateness_s) > 0:
        while lateness_s(batch) <= 0 and batch < 2.0**100:
            batch *= 2
    return batch


def _late_batch(lateness_s: SecondsAt, low: float, high: float) -> float | None:
    """Some batch in between where the host is late though it is on time at both ends, or None.

    A ternary search for the peak. Lateness lies below its own chords prolonged, so that most
    stretches are ruled out by the first two values.
    """
    at_low, at_high = lateness_s(low), lateness_s(high)
    while high - low > _WIDTH * high:
        third = (high - low) / 3
        left, right = low + third, high - third
        at_left, at_right = lateness_s(left), lateness_s(right)
        if max(at_left, at_right) > 0:
            return left if at_left > 0 else right
        middle = min(max(at_left, 2 * at_left - at_low), max(at_right, 2 * at_right - at_high))
        if max(2 * at_left - at_right, 2 * at_right - at_left, middle) <= 0:
            return None
        if at_left < at_right:
            low, at_low = left, at_left
        else:
            high, at_high = right, at_right
    return None


def _root(lateness_s: SecondsAt, on_time: float, late: float) -> float:
    """The batch between an on-time and a late one where the host becomes late (bisection)."""
    while late - on_time > _WIDTH * late:
        middle = (on_time + late) / 2
        if not on_time < middle < late:
            break
        if lateness_s(middle) > 0:
            late = middle
        else:
            on_time = middle
    return (on_time + late) / 2
