"""How true is the measuring? A path that waits for a known time is measured like any other.

The harness's own cost, measured on the empty path and reported beside every figure, is taken
off; the path's record of itself gets one reading of the clock added, which it cannot see.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import count
from statistics import median
from time import perf_counter_ns
from typing import Any

from detokbench.bench.plan import DEFAULT_EFFORT
from detokbench.bench.sampling import (
    Budget,
    clock_floor_ns,
    quiet_gc,
    visit,
    warm_up_and_calibrate,
)
from detokbench.bench.subjects import PathSteps
from detokbench.paths.empty import EmptyPath
from detokbench.paths.protocol import DetokPath, Flags

BOUND = 0.02


class BusyWaitPath:
    """Waits for each row of a step, and notes how long each step took it."""

    def __init__(self, wait_ns: int) -> None:
        self._wait_ns = wait_ns
        self._next_row = count()
        self.steps_ns: list[int] = []

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        return [next(self._next_row) for _ in prompts]

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        start = now = perf_counter_ns()
        end = start + self._wait_ns * len(rows)
        while now < end:
            now = perf_counter_ns()
        self.steps_ns.append(now - start)
        return []

    def end(self, row: int) -> str:
        return ""


def measured_ns(path: DetokPath, batch: int) -> float:
    """Cost a token, by the sampling and the fit that ``measure-c`` uses in each process."""
    steps = [[[0] for _ in range(batch)] for _ in range(64)]
    subject = PathSteps(path, [[] for _ in range(batch)], steps, Flags())
    budget = Budget(
        warmup_ns=round(DEFAULT_EFFORT.warmup_ms * 1e6),
        visit_ns=round(DEFAULT_EFFORT.visit_ms * 1e6),
        visits=DEFAULT_EFFORT.visits,
    )
    with quiet_gc(keep_on=False):
        samples = warm_up_and_calibrate(subject, budget, clock_floor_ns())
        for _ in range(budget.visits):
            visit(subject, samples, budget)
    return samples.line().slope


def main() -> int:
    missed = 0
    no_vocabulary: Any = None
    for batch in (1, 32):
        floor = measured_ns(EmptyPath(no_vocabulary), batch)
        for wait_us in (5, 20, 50):
            path = BusyWaitPath(wait_us * 1000)
            measured = measured_ns(path, batch) - floor
            recorded = (median(path.steps_ns) + clock_floor_ns()) / batch
            error = measured / recorded - 1
            missed += abs(error) > BOUND
            print(
                f"wait {wait_us:>2} µs, B = {batch:>2}: measured {measured / 1e3:.3f} µs "
                f"(+ harness {floor / 1e3:.3f}), recorded {recorded / 1e3:.3f} µs, "
                f"error {100 * error:+.2f} %"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
