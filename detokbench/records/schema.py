"""The record: the one file that joins measuring and reporting.

``rows`` is flat, so that ``pandas.DataFrame(record["rows"])`` is the tidy table. Times are in
seconds. A record names no user, host or folder.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

Metric = Literal[
    # measure-c
    "call",
    "per_token",
    "admit",
    "first_token",
    "floor",
    # time-step
    "t_step",
    # sweep
    "host_step",
    "chunk",
    "logprobs",
    # tail-str
    "decode",
    "contain",
    "prefix_scan",
    "finish_check",
    "prefix_check",
    "both_checks",
    # probe, pipeline and frontend
    "ttft",
    "chunk_gap",
    "itl",
    # encode
    "encode",
    "encode_batch",
    # pipeline and frontend
    "chunks_per_token",
    "lag",
    "host_part",
    # frontend
    "cpu_per_token",
    "stretch",
]
Source = Literal["measured", "cpu", "given", "memory-only", "roofline", "derated", "modelled"]
"""Where a value comes from; two sources are never mixed in one row."""
GateVerdict = Literal["pass", "expected", "fail", "not-run"]


class Row(msgspec.Struct, kw_only=True):
    """One measured quantity: its value in each worker process and what follows from them.

    ``samples`` has one value a process, in the order of ``Record.processes``; null where a
    process has none. ``ratio_to_fast`` is the median over processes of the ratio to ``fast`` at
    the same batch, taken within each process.
    """

    path: str
    batch: int
    metric: Metric
    unit: str = "s"
    median: float | None
    ci_low: float | None
    ci_high: float | None
    mad: float | None
    samples: list[float | None]
    vocab: str
    prompt_len: int | None = None
    ids_per_step: int | None = None
    context: int | None = None
    stream_interval: int | None = None
    stop: str | None = None
    """The request's stops, as tables name them; ``details`` spells them out."""
    stop_tokens: int | None = None
    """Tokens of the longest stop string."""
    threads: int | None = None
    call: str | None = None
    calls_per_token: float | None = None
    lookups_per_token: float | None = None
    ratio_to_fast: float | None = None
    ratio_ci_low: float | None = None
    ratio_ci_high: float | None = None
    gate: GateVerdict = "not-run"
    source: Source = "measured"
    engine: str | None = None
    """The front end, of ``frontend``; the next four too."""
    streams: int | None = None
    t_step: float | None = None
    role: str | None = None
    variant: str | None = None


class GateResult(msgspec.Struct, kw_only=True):
    """What the gate saw of one path before anything was timed."""

    path: str
    verdict: GateVerdict
    texts: int
    """Texts that were streamed."""
    differing: list[str] = []
    """Names of the texts whose streamed text was not the one-shot text."""
    note: str = ""
    """Why the difference is expected, or the first difference."""


class NotApplicable(msgspec.Struct, kw_only=True):
    """A path that was asked for and does not apply to the vocabulary."""

    path: str
    why: str


class CellSamples(msgspec.Struct, kw_only=True):
    """Raw times of one cell in one process, from which its value was fitted.

    ``points`` holds ``[n, units, [ns, …]]``: for each of several N, the units of work in it
    (tokens, calls, or rows) and the time of each repetition. Outliers are in it.
    """

    path: str
    metric: Metric
    batch: int
    threads: int | None = None
    prompt_len: int | None = None
    ids_per_step: int | None = None
    stream_interval: int | None = None
    stop: str | None = None
    value_s: float | None
    """Null where the machine was so disturbed that the slope came out at zero or below."""
    intercept_s: float
    warmup_ns: int
    points: list[tuple[int, float, list[int]]]


class ProcessRun(msgspec.Struct, kw_only=True):
    """One worker process: where it ran and all that it timed."""

    cpu: int | None
    clock_floor_ns: int
    seconds: float
    cells: list[CellSamples]


class Record(msgspec.Struct, kw_only=True):
    """Everything about one run."""

    schema_version: int = SCHEMA_VERSION
    kind: str
    created: str
    """UTC, ISO 8601."""
    command: list[str]
    """The command line, paths reduced to file names."""
    detokbench: str
    partial: bool = False
    """True when the run was interrupted or a worker died: only finished processes are in it."""
    scenario: dict[str, Any]
    vocabulary: dict[str, Any]
    settings: dict[str, Any]
    machine: dict[str, Any]
    packages: dict[str, str]
    warnings: list[str] = []
    gate: list[GateResult] = []
    not_applicable: list[NotApplicable] = []
    rows: list[Row] = []
    details: dict[str, Any] = {}
    """What only this kind of record has: the GPU, the model, points, answers."""
    processes: list[ProcessRun] = []
