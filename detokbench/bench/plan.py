"""What a run measures: its cells, and how much time each gets. Plain data, sent to workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from detokbench.paths.protocol import PathClass
from detokbench.records.schema import GateResult, Metric, NotApplicable, ProcessRun
from detokbench.workload.scenario import Scenario

FLOOR = "empty"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to time. ``threads`` 0 means all that the machine allows."""

    path: str
    metric: Metric
    batch: int
    threads: int | None = None
    prompt_len: int | None = None


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How much a run spends: processes, and milliseconds on each cell of a process."""

    name: str
    processes: int
    warmup_ms: float
    visit_ms: float
    visits: int


DEFAULT_EFFORT = Effort(name="default", processes=6, warmup_ms=3, visit_ms=6, visits=3)
QUICK_EFFORT = Effort(name="quick", processes=2, warmup_ms=1.5, visit_ms=3, visits=2)
RIGOROUS_EFFORT = Effort(name="rigorous", processes=20, warmup_ms=10, visit_ms=20, visits=5)


class LoadRequest(msgspec.Struct, kw_only=True):
    """The first message to a worker: what to load while others measure."""

    vocabulary: str
    trust_remote_code: bool
    paths: list[str]


class PrepareRequest(msgspec.Struct, kw_only=True):
    """To one worker: run the gate and make the workload."""

    scenario: Scenario
    text_folder: str
    workload_file: str
    seed: int
    run_gate: bool


class MeasureRequest(msgspec.Struct, kw_only=True):
    """To every other worker: time these cells."""

    cells: list[Cell]
    workload_file: str
    scenario: Scenario
    effort: Effort
    cpu: int | None
    seed: int
    keep_gc: bool


class Prepared(msgspec.Struct, kw_only=True):
    """The answer to PrepareRequest."""

    gate: list[GateResult]
    not_applicable: list[NotApplicable]
    vocabulary: dict[str, Any]


class CellFacts(msgspec.Struct, kw_only=True):
    """What counting, rather than timing, says of a cell."""

    call: str | None
    calls_per_token: float
    lookups_per_token: float


class Measured(msgspec.Struct, kw_only=True):
    """The answer to MeasureRequest: a process, and what was counted of each cell of ``call``."""

    process: ProcessRun
    facts: list[tuple[Cell, CellFacts]]


def cells_for(classes: Sequence[PathClass], scenario: Scenario, cpus: int) -> list[Cell]:
    """All cells of ``measure-c``: steps and bare calls at each batch, admission at each prompt."""
    cells = [Cell(path=FLOOR, metric="floor", batch=batch) for batch in scenario.batches]
    for path_class in classes:
        name = path_class.name
        for threads in thread_counts(path_class, cpus):
            for batch in scenario.batches:
                cells.append(Cell(path=name, metric="per_token", batch=batch, threads=threads))
                cells.append(Cell(path=name, metric="call", batch=batch, threads=threads))
        for prompt_len in scenario.admit_prompt_lens:
            cells.append(Cell(path=name, metric="admit", batch=1, prompt_len=prompt_len))
            cells.append(Cell(path=name, metric="first_token", batch=1, prompt_len=prompt_len))
    return cells


def thread_counts(path_class: PathClass, cpus: int) -> list[int | None]:
    """The thread counts of a path on this machine; 'all' falls away where there is one CPU."""
    counts = [cpus if count == 0 else count for count in path_class.thread_counts]
    return list(dict.fromkeys(counts))
