"""What only a ``pipeline`` record has: its ``details``. Times are in seconds.

A run is judged within its window: from the end of the warm-up to the end of the engine's schedule.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from detokbench.records.schema import Record

Topology = Literal["vllm", "sglang"]
RunOf = Literal["single", "walk", "bisect", "depth"]


class Quantiles(msgspec.Struct, kw_only=True):
    """A distribution; a percentile is None where fewer than two samples lie beyond it.

    ``curve`` holds the quantiles at 0, 1, … 100 per cent.
    """

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    longest: float | None
    curve: list[float] = []


class Hop(msgspec.Struct, kw_only=True):
    """Delay since the engine's emission at one hop: ``detokenizer decoded``, ``front-end read``.

    Until a step is there, or decoded; for a chunk, of the oldest id in it.
    """

    name: str
    delay: Quantiles


class ProcessFacts(msgspec.Struct, kw_only=True):
    """One process in one run. ``cpu_share`` is of one core, within the window."""

    name: str
    cpu_share: float | None
    cpu_s: float
    cpu_s_per_step: float | None
    longest_block_s: float | None
    """The longest that its event loop served nobody else; None where it has no loop."""
    memory: list[tuple[float, int]]
    """(seconds since the first step, resident bytes), at even distances."""
    states_left: int
    """Requests whose state it still held at the end."""
    ids: int | None = None
    """Ids that it decoded; None for one that decodes none, and in older records."""


class Point(msgspec.Struct, array_like=True):
    """A moment of a run. ``waiting`` counts ids emitted and not decoded, ``undelivered`` those not
    taken by a reader; ``itl_s`` is the mean over the sampled streams since the point before.
    """

    t_s: float
    waiting: float
    undelivered: float
    itl_s: float | None


class RunFacts(msgspec.Struct, kw_only=True):
    """One run at one batch."""

    of: RunOf
    batch: int
    duration_s: float
    window_s: float
    steps: int
    late_steps: int
    """Steps that began more than 0.2 ms after their time."""
    drift_s: float
    """How late the last step began."""
    worst_late_s: float
    check_s_per_step: float
    """In SGLang's stop checks, on the engine's critical path."""
    requests: int
    finished: int
    aborted: int
    ids: int
    itl: Quantiles
    gap: Quantiles
    chunks_per_token: float | None
    typical_chunks_per_token: float | None
    """The median over pieces of 50 ms: what else the machine does merges chunks in some of them,
    a host that is late in all."""
    undelivered_ids: float
    """At the end of the window."""
    growth_ids_per_s: float
    lag_s_per_s: float
    """Seconds by which the text falls behind the engine each second."""
    broken: str
    """Why the host does not keep up; empty where it does, or where that cannot be told."""
    not_judged: str = ""
    """What looks as if it did not keep up, while others had taken its CPU."""
    busiest_cpu_share: float | None = None
    """Of the CPUs of the host, the most that the run's processes keep one busy; None in older
    records, as are the next three."""
    engine_cpu_share: float | None = None
    """The same of the engine's CPU."""
    rows_per_step: float | None = None
    """Rows that ran at a time: ids a step, the mean over the window. ``batch`` is the most."""
    steps_share: float | None = None
    """Steps done of those that were due."""
    hops: list[Hop]
    processes: list[ProcessFacts]
    checked: int
    wrong: int
    first_difference: str
    client_share: float | None
    is_client_bound: bool
    series: list[Point]


class PartCost(msgspec.Struct, kw_only=True):
    """Seconds a step of one part of one process at one batch."""

    process: str
    part: str
    batch: int
    seconds: float


class Prediction(msgspec.Struct, kw_only=True):
    """The sum of the measured parts, and where it crosses T_step.

    ``host_s[i]`` is the busiest CPU's time a step at ``batches[i]``; ``busiest`` is who is on it.
    """

    parts: list[PartCost]
    batches: list[int]
    host_s: list[float]
    busiest: str
    answer: str
    batch: float | None


class SelfTest(msgspec.Struct, kw_only=True):
    """What the clients' process can take: canned streams as fast as they are read."""

    events_per_s: float
    reads_per_s: float
    cpu_share: float


class PipelineDetails(msgspec.Struct, kw_only=True):
    """All of it."""

    topology: Topology
    path: str
    t_step_s: float
    interval: int
    chunk_size: int
    stop: list[str]
    front_ends: int
    detokenizers: int
    arrival: Literal["closed", "poisson"]
    rate: float | None
    max_tokens: int
    http: bool
    cpus: dict[str, list[int] | None]
    processes: list[str]
    rule: str
    """When a host counts as not keeping up, in words."""
    ended_by: str = ""
    """What ended it early; empty for a whole one."""
    runs: list[RunFacts]
    prediction: Prediction | None = None
    live_batch: float | None = None
    """The middle between the last batch that kept up and the first that did not."""
    live_low: int | None = None
    live_high: int | None = None
    self_test: SelfTest | None = None


def details_of(record: Record) -> PipelineDetails:
    """The typed details of a ``pipeline`` record. Raises msgspec.ValidationError for another's."""
    return msgspec.convert(record.details, PipelineDetails)
