"""From measured host costs to answers: B*, the interval that keeps up, the front ends needed.

Samples are by process, so that intervals come from a bootstrap over processes. Nothing here reads
a clock or knows a tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from detokbench.model.crossover_interval import CrossoverInterval, crossover_interval, median_curve
from detokbench.model.curves import SecondsAt
from detokbench.model.host import HostParts, sglang_parts, vllm_parts
from detokbench.model.queue import front_ends_needed, shared_by_engines
from detokbench.model.stream_interval import smallest_interval

Topology = Literal["vllm", "sglang"]
StepSamples = Mapping[int, float]
"""What one process measured of a path: batch → seconds a step, decoding only."""


@dataclass(frozen=True)
class PathCost:
    """The decoding of one path. ``decode_s[k]`` has one entry a process, at stream interval k.

    In the vLLM topology an interval spares no decoding, so its only key is 1.
    """

    path: str
    threads: int | None
    topology: Topology
    decode_s: Mapping[int, Sequence[StepSamples]]

    @property
    def key(self) -> tuple[str, int | None]:
        return self.path, self.threads


@dataclass(frozen=True)
class RequestCost:
    """What a sequence costs beside decoding, in seconds, one entry a process.

    ``chunk_s`` is one chunk built and sent, ``extra_s`` is added for every id (the text of
    log-probabilities), ``stops_s`` is a request's stop checks in SGLang's scheduler.
    """

    chunk_s: Sequence[float]
    extra_s: Sequence[float] | None = None
    stops_s: Sequence[float] | None = None

    def of_process(self, number: int) -> tuple[float, float, float]:
        """``(chunk_s, extra_s, stops_s)``; zero for what is not counted."""
        extra_s = self.extra_s[number] if self.extra_s else 0.0
        stops_s = self.stops_s[number] if self.stops_s else 0.0
        return self.chunk_s[number], extra_s, stops_s


NOTHING_SENT = RequestCost(chunk_s=())
"""Decoding only: no chunk is built."""


def host_parts(
    cost: PathCost,
    process: int,
    batch: int,
    request: RequestCost,
    interval: int = 1,
    ids_per_step: int = 1,
) -> HostParts:
    """Seconds a step of each process of the topology, from what one worker process measured."""
    decode_s = _decode_samples(cost, interval)[process][batch]
    chunk_s, extra_s, stops_s = request.of_process(process) if request.chunk_s else (0.0, 0.0, 0.0)
    if cost.topology == "vllm":
        return vllm_parts(batch, decode_s, chunk_s, interval, ids_per_step, extra_s)
    return sglang_parts(batch, decode_s, chunk_s, interval, ids_per_step, extra_s, stops_s)


def _decode_samples(cost: PathCost, interval: int) -> Sequence[StepSamples]:
    return cost.decode_s[interval if cost.topology == "sglang" else 1]


def busiest_samples(
    cost: PathCost,
    request: RequestCost,
    interval: int = 1,
    ids_per_step: int = 1,
    engines: int = 1,
) -> list[dict[int, float]]:
    """Seconds a step of the busiest host process: one ``{batch: seconds}`` a worker process.

    ``engines`` engines of that batch each share the front end.
    """
    samples = []
    for process, points in enumerate(_decode_samples(cost, interval)):
        busiest = {
            batch: host_parts(cost, process, batch, request, interval, ids_per_step).busiest_s
            for batch in points
        }
        samples.append({batch: engines * seconds for batch, seconds in busiest.items()})
    return samples


def find_crossover(
    cost: PathCost,
    request: RequestCost,
    t_step_s: SecondsAt,
    *,
    interval: int = 1,
    ids_per_step: int = 1,
    engines: int = 1,
    largest_batch: float | None = None,
) -> CrossoverInterval:
    """B* of a path against one T_step. Raises ValueError for fewer than two batches."""
    samples = busiest_samples(cost, request, interval, ids_per_step, engines)
    return crossover_interval(samples, t_step_s, largest_batch=largest_batch)


def interval_that_keeps_up(
    cost: PathCost,
    request_at: Callable[[int], RequestCost],
    batch: int,
    t_step_s: float,
    intervals: Sequence[int],
    *,
    ids_per_step: int = 1,
    engines: int = 1,
) -> int | None:
    """The smallest measured k at which the host keeps up with ``batch``; None if none does.

    ``request_at`` gives the other costs at an interval.
    """

    def host_s(interval: int) -> float:
        samples = busiest_samples(cost, request_at(interval), interval, ids_per_step, engines)
        return median(points[batch] for points in samples)

    return smallest_interval(host_s, t_step_s, intervals)


def processes_needed(
    cost: PathCost,
    request: RequestCost,
    batch: int,
    t_step_s: float,
    *,
    ids_per_step: int = 1,
    engines: int = 1,
) -> int | None:
    """Front ends (or detokenizers) that ``batch`` needs at k = 1; None where no number does."""
    curve = median_curve(busiest_samples(cost, request, 1, ids_per_step))
    shared: Callable[[float], float] = shared_by_engines(curve, engines)
    return front_ends_needed(shared, batch, t_step_s)
