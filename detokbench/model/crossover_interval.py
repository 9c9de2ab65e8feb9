"""How sure B* is: a bootstrap over processes, each of which measured the host on its own.

Processes are resampled, never their single timings: timings of one process share its memory
layout and are not independent.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from detokbench.model.crossover import Answer, Crossover, crossover
from detokbench.model.curves import Measured, SecondsAt

ProcessPoints = Mapping[int, float]
"""What one process measured: batch → seconds a step (its median)."""


@dataclass(frozen=True, slots=True)
class CrossoverInterval:
    """B* of the medians over processes, and where resampled ones lie.

    ``low_batch`` and ``high_batch`` are unrounded; infinity stands for never and 1 for always
    late. Memory is not a bound here: they are crossings, whether they fit or not.
    """

    point: Crossover
    low_batch: float
    high_batch: float
    confidence: float
    never_share: float
    """The part of the resamples, 0 to 1, in which the host never becomes late."""


def median_curve(samples: Sequence[ProcessPoints]) -> Measured:
    """At each batch the median over the processes that measured it.

    Raises ValueError where that leaves fewer than two batches.
    """
    batches = sorted({batch for points in samples for batch in points})
    return Measured.from_points(
        {batch: median(points[batch] for points in samples if batch in points) for batch in batches}
    )


def crossover_interval(
    samples: Sequence[ProcessPoints],
    t_step_s: SecondsAt,
    *,
    largest_batch: float | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> CrossoverInterval:
    """Percentile bootstrap of B*, the same for the same seed; one entry of samples a process.

    With one process the interval is the point. Raises ValueError for no sample, or for fewer than
    two batches in any process.
    """
    point = crossover(median_curve(samples), t_step_s, largest_batch=largest_batch)
    generator = random.Random(seed)
    processes = range(len(samples))
    # A handful of processes has few distinct resamples: 126 for five of them.
    known: dict[tuple[int, ...], Crossover] = {}
    crossings: list[Crossover] = []
    for _ in range(resamples):
        drawn = tuple(sorted(generator.choices(processes, k=len(samples))))
        if drawn not in known:
            known[drawn] = crossover(median_curve([samples[i] for i in drawn]), t_step_s)
        crossings.append(known[drawn])
    batches = sorted(crossing.order_batch for crossing in crossings)
    cut = int((1 - confidence) / 2 * resamples)
    never = sum(crossing.answer is Answer.NEVER for crossing in crossings)
    return CrossoverInterval(
        point, batches[cut], batches[-1 - cut], confidence, never / len(crossings)
    )
