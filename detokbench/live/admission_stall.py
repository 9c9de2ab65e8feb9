"""Running streams on an event loop while prompts are admitted: the gaps between their tokens.

Every T_step, on an absolute schedule, the loop gets a new id for each running stream. After every
so many steps a new request comes in at some moment between two steps: it is admitted then, and its
first token comes with the next step. A step's tokens are out when the path has served the whole
step, as vLLM's front end lets its streams run only after a slice of outputs (0.33,
AsyncLLM.output_handler), so all running streams have the same gaps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import perf_counter, thread_time

from detokbench.live.ticker import Ticker
from detokbench.paths.protocol import DetokPath

_HEAD_START_S = 0.02
_WARM_STEPS = 8


@dataclass(frozen=True)
class Stalled:
    """Seconds: gaps between the tokens of a stream, and what each admission took of the loop.

    ``first_s`` is the step with the first token less an ordinary step.
    """

    gaps_s: list[float]
    admit_s: list[float]
    first_s: list[float]
    cpu_s: list[float]
    """CPU of the thread in an admission and the step with its first token."""
    step_s: float


class _Streams:
    """The loop's side: what is called when a step's ids, or a request, come in."""

    def __init__(
        self,
        path: DetokPath,
        prompts: Sequence[list[int]],
        outputs: Sequence[list[int]],
        admitted: Sequence[list[int]],
        first_ids: Sequence[int],
    ) -> None:
        self._path = path
        self._outputs = outputs
        self._admitted = admitted
        self._first_ids = first_ids
        self._rows = path.open(prompts)
        self._new_rows: list[int] = []
        self._step = 0
        self.out_at: list[float] = []
        self.plain_s: list[float] = []
        self.admit_s: list[float] = []
        self.first_s: list[float] = []
        self.cpu_s: list[float] = []
        self._admit_cpu_s = 0.0

    def step(self) -> None:
        new_ids = [[ids[self._step % len(ids)]] for ids in self._outputs]
        new_rows, self._new_rows = self._new_rows, []
        new_ids += [[self._first_ids[row % len(self._first_ids)]] for row in new_rows]
        start, cpu = perf_counter(), thread_time()
        self._path.step([*self._rows, *new_rows], new_ids)
        end = perf_counter()
        self.out_at.append(end)
        (self.first_s if new_rows else self.plain_s).append(end - start)
        if new_rows:
            self.cpu_s.append(thread_time() - cpu + self._admit_cpu_s)
        self._step += 1
        for row in new_rows:
            self._path.end(row)

    def admit(self) -> None:
        prompt = self._admitted[len(self.admit_s) % len(self._admitted)]
        start, cpu = perf_counter(), thread_time()
        self._new_rows += self._path.open([prompt])
        self.admit_s.append(perf_counter() - start)
        self._admit_cpu_s = thread_time() - cpu

    def forget(self) -> None:
        """What was only to warm up."""
        for times in (self.out_at, self.plain_s, self.admit_s, self.first_s, self.cpu_s):
            times.clear()


async def measure_stall(
    path: DetokPath,
    prompts: Sequence[list[int]],
    outputs: Sequence[list[int]],
    admitted: Sequence[list[int]],
    first_ids: Sequence[int],
    t_step_s: float,
    steps: int,
    every: int,
    rng: random.Random,
) -> Stalled:
    """Step the streams ``steps`` times and admit a prompt after each ``every`` steps."""
    streams = _Streams(path, prompts, outputs, admitted, first_ids)
    for _ in range(_WARM_STEPS):
        streams.step()
    streams.admit()
    streams.step()
    streams.forget()
    events = schedule(t_step_s, steps, every, rng)
    calls = (streams.step, streams.admit)
    start = perf_counter() + _HEAD_START_S
    times_s = [time_s for time_s, _ in events]
    with Ticker(start, times_s, lambda i: calls[events[i][1]]()) as ticker:
        await ticker.done.wait()
    plain_s = median(streams.plain_s) if streams.plain_s else 0.0
    return Stalled(
        gaps_s=[after - before for before, after in pairwise(streams.out_at)],
        admit_s=streams.admit_s,
        first_s=[seconds - plain_s for seconds in streams.first_s],
        cpu_s=streams.cpu_s,
        step_s=plain_s,
    )


def schedule(
    t_step_s: float, steps: int, every: int, rng: random.Random
) -> list[tuple[float, bool]]:
    """``(when, whether a request comes in)``, in order: else it is a step.

    The last event is a step, so that every request gets its first token.
    """
    events = [(step * t_step_s, False) for step in range(steps)]
    for step in range(every // 2, steps - 1, every):
        events.append(((step + rng.random()) * t_step_s, True))
    return sorted(events)
