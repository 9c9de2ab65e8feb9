"""What the measured parts of a ``pipeline`` record predict at a batch."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from detokbench.live.topology import ENGINE, rows_each
from detokbench.model.curves import Measured
from detokbench.model.queue import front_ends_needed, merged_chunks_per_step, queue_state
from detokbench.records.pipeline import PipelineDetails, Prediction, RunFacts

_CHUNK_PARTS = {"queue", "HTTP"}
_KINDS = {"detokenizer": "detokenizer", "front-end": "front end"}


def host_at(prediction: Prediction, batch: float) -> float:
    """Seconds a step of the busiest CPU, by the measured parts."""
    return Measured(tuple(map(float, prediction.batches)), tuple(prediction.host_s))(batch)


class Overload(NamedTuple):
    """What a reader sees at one batch, by the measured parts."""

    chunks_per_token: float
    itl_s: float
    lag_s_per_s: float


def merges(details: PipelineDetails, batch: int) -> bool:
    """Whether unread chunks merge under overload: where a step is one slice of the loop.

    While steps wait, vLLM's output handler goes from one to the next without a turn of the loop;
    only between two slices of a step do readers get one.
    """
    return details.topology == "vllm" and batch / details.front_ends <= details.chunk_size


def overload_at(details: PipelineDetails, prediction: Prediction, batch: int) -> Overload:
    """Chunks that merge spare their own cost; what is left over T_step makes the text lag."""
    t_step_s, due = details.t_step_s, 1 / details.interval
    host_s = host_at(prediction, batch)
    chunks = 1.0
    if merges(details, batch):
        fixed_s, chunk_s = _front_end_parts(prediction, batch)
        merged = merged_chunks_per_step(batch, fixed_s, chunk_s, t_step_s)
        chunks = 0.0 if merged is None else merged
        host_s = max(fixed_s, min(host_s, t_step_s))
    state = queue_state(batch, host_s, t_step_s)
    return Overload(chunks * due, state.itl_s, state.lag_s_per_s)


def _front_end_parts(prediction: Prediction, batch: int) -> tuple[float, float]:
    """Of one front end at a batch: seconds a step without chunks, and seconds a chunk."""
    chunk_s, fixed_s = {}, {}
    for at in prediction.batches:
        parts = [p for p in prediction.parts if p.batch == at and p.process.startswith("front-end")]
        own = [part for part in parts if part.process == parts[0].process]
        chunk_s[at] = sum(part.seconds for part in own if part.part in _CHUNK_PARTS) / at
        fixed_s[at] = sum(part.seconds for part in own if part.part not in _CHUNK_PARTS)
    at_batch = Measured.from_points
    return at_batch(fixed_s)(batch), max(at_batch(chunk_s)(batch), 0.0)


def needed_by_parts(details: PipelineDetails, batch: int) -> dict[str, int | None]:
    """How many processes of each kind keep up with a batch, each with its part of it and a CPU.

    None where even one sequence a process takes longer than T_step.
    """
    prediction = details.prediction
    assert prediction is not None
    needed = {}
    for kind, name in _KINDS.items():
        at = {
            _most_rows(details, kind, each): seconds
            for each in prediction.batches
            if (seconds := _busiest_of(prediction, kind, each)) is not None
        }
        if len(at) > 1:
            needed[name] = front_ends_needed(Measured.from_points(at), batch, details.t_step_s)
    return needed


def engine_at(details: PipelineDetails, batch: int) -> float:
    """Seconds a step of the engine's own work, by the measured parts."""
    prediction = details.prediction
    assert prediction is not None
    at = {part.batch: part.seconds for part in prediction.parts if part.process == ENGINE}
    return Measured.from_points(at)(batch)


def _most_rows(details: PipelineDetails, kind: str, batch: int) -> int:
    """Rows of a batch that the process of a kind with most of them gets."""
    if kind == "detokenizer":
        return max(rows_each("sglang", details.detokenizers, details.front_ends, batch))
    return -(-batch // details.front_ends)


def _busiest_of(prediction: Prediction, kind: str, batch: int) -> float | None:
    """Seconds a step of the process of a kind that has most to do."""
    seconds: dict[str, float] = {}
    for part in prediction.parts:
        if part.batch == batch and part.process.startswith(kind):
            seconds[part.process] = seconds.get(part.process, 0.0) + part.seconds
    return max(seconds.values(), default=None)


def needed_by_cpu(run: RunFacts, t_step_s: float) -> dict[str, int | None]:
    """As ``needed_by_parts``, by the CPU that a run's processes took for all its steps.

    What waited at the end of the schedule is worked off after it, so that this is no less than
    what the steps take; chunks that merged are spared, so that it may be too few.
    """
    needed: dict[str, int | None] = {}
    for kind, name in _KINDS.items():
        mine = [process.cpu_s for process in run.processes if process.name.startswith(kind)]
        if mine and run.steps:
            needed[name] = max(ceil(sum(mine) / run.steps / t_step_s), 1)
    return needed


def step_share(details: PipelineDetails, prediction: Prediction, batch: float) -> float:
    """Steps done of those due, where the busiest CPU is the engine's."""
    return min(details.t_step_s / host_at(prediction, batch), 1.0)
