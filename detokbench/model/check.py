"""How true a model is to cells that it was not fitted on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from detokbench.model.curves import Measured
from detokbench.model.host import amortised_decode_s, fit_amortised

FEWEST_TO_CHECK = 3
"""Batches: from the outer ones those between are predicted."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One cell: seconds a step as the model has it and as it was measured."""

    batch: int
    interval: int
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """Relative: 0.1 is ten per cent too much."""
        return self.predicted_s / self.measured_s - 1


def predict_between(cells: Mapping[tuple[int, int], float]) -> Iterator[Prediction]:
    """Predict cells ``(batch, interval) → seconds a step`` from a few of them.

    Of the batches every other one is known, of the intervals the shortest and the longest. The
    cost between batches is straight, over intervals it is ``a/k + b``; the known cells are left
    out of what is predicted.
    """
    batches = sorted({batch for batch, _ in cells})
    intervals = sorted({interval for _, interval in cells})
    known_batches = [*batches[::2], *([batches[-1]] if len(batches) % 2 == 0 else [])]
    known_intervals = [intervals[0], intervals[-1]] if len(intervals) > 1 else intervals
    at_interval = {
        interval: Measured.from_points({b: cells[b, interval] for b in known_batches})
        for interval in known_intervals
    }
    for (batch, interval), measured_s in sorted(cells.items()):
        if batch in known_batches and interval in known_intervals:
            continue
        known = {k: curve(batch) for k, curve in at_interval.items()}
        if interval in known:
            predicted_s = known[interval]
        else:
            predicted_s = amortised_decode_s(*fit_amortised(known), interval)
        yield Prediction(batch, interval, predicted_s, measured_s)
