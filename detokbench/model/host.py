"""Host seconds a step by topology: what one process does, and which process is the busiest.

vLLM's front end decodes, builds and sends in one process, off the GPU's path. SGLang's detokenizer
decodes and its front end sends, each in a process of its own, and its scheduler looks for stop
strings on the GPU's own path, where overlap hides it up to T_step. Behind any of them the host
keeps up as long as its busiest process does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from detokbench.model.stream_interval import chunks_per_step


@dataclass(frozen=True, slots=True)
class HostParts:
    """Seconds a step of each process of a topology, at one batch.

    ``scheduler_s`` is zero without stop strings. In the vLLM topology all is in ``front_end_s``.
    """

    front_end_s: float
    detokenizer_s: float = 0.0
    scheduler_s: float = 0.0

    @property
    def busiest_s(self) -> float:
        """The process that decides whether the host keeps up."""
        return max(self.front_end_s, self.detokenizer_s, self.scheduler_s)


def vllm_parts(
    batch: int,
    decode_step_s: float,
    chunk_s: float,
    interval: int = 1,
    ids_per_step: int = 1,
    extra_s: float = 0.0,
) -> HostParts:
    """vLLM: every id is decoded at every step, chunks are built and sent once an interval.

    ``decode_step_s`` is the whole batch's step, ``chunk_s`` one chunk, ``extra_s`` what each id
    adds whatever the interval (log-probabilities).
    """
    chunks = batch * chunks_per_step(interval, ids_per_step)
    extras_s = batch * ids_per_step * extra_s
    return HostParts(front_end_s=decode_step_s + chunks * chunk_s + extras_s)


def sglang_parts(
    batch: int,
    decode_step_s: float,
    chunk_s: float,
    interval: int = 1,
    ids_per_step: int = 1,
    extra_s: float = 0.0,
    stops_s: float = 0.0,
) -> HostParts:
    """SGLang: decoding and sending once an interval, in two processes; stops in the scheduler.

    ``decode_step_s`` is already a mean over the steps of an interval, as measured with windows
    that hold a whole interval's ids; ``stops_s`` is one request's finish and prefix checks.
    """
    chunks = batch * chunks_per_step(interval, ids_per_step)
    return HostParts(
        front_end_s=chunks * chunk_s + batch * ids_per_step * extra_s,
        detokenizer_s=decode_step_s,
        scheduler_s=batch * stops_s,
    )


def amortised_decode_s(per_chunk_s: float, per_id_s: float, interval: int) -> float:
    """SGLang's decode a sequence-step at an interval of k, as ``a/k + b``.

    A chunk costs ``per_chunk_s`` however many ids it holds and ``per_id_s`` for each of them.
    """
    return per_chunk_s / interval + per_id_s


def fit_amortised(cost_s_at: Mapping[int, float]) -> tuple[float, float]:
    """``(per_chunk_s, per_id_s)`` through costs a sequence-step at two or more intervals.

    Least squares in 1/k, each point weighted by its size, so that relative errors count alike.
    Raises ValueError for fewer than two intervals.
    """
    if len(cost_s_at) < 2:
        raise ValueError("the amortised cost needs at least two intervals")
    points = [(1 / interval, cost, 1 / cost**2) for interval, cost in cost_s_at.items()]
    weight = sum(w for _, _, w in points)
    mean_x = sum(w * x for x, _, w in points) / weight
    mean_y = sum(w * y for _, y, w in points) / weight
    spread = sum(w * (x - mean_x) ** 2 for x, _, w in points)
    slope = sum(w * (x - mean_x) * (y - mean_y) for x, y, w in points) / spread
    return slope, mean_y - slope * mean_x
