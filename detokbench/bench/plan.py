"""What a run measures: its cells, and how much time each gets. Plain data, sent to workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from detokbench.bench.stop_sets import StopSet
from detokbench.paths.protocol import PathClass
from detokbench.records.encode import PromptFacts
from detokbench.records.schema import GateResult, Metric, NotApplicable, ProcessRun
from detokbench.workload.scenario import Scenario

FLOOR = "empty"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to time. ``threads`` 0 means all that the machine allows.

    ``stops`` are those of every request, where it is the stop checks that are timed;
    ``alternatives`` are those of a position, where it is the text of log-probabilities.
    """

    path: str
    metric: Metric
    batch: int
    threads: int | None = None
    prompt_len: int | None = None
    ids_per_step: int | None = None
    stream_interval: int | None = None
    stops: StopSet | None = None
    alternatives: int | None = None

    @property
    def stop(self) -> str | None:
        """The name of the stops, as records have it."""
        return None if self.stops is None else self.stops.name


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


class PrepareRequest(msgspec.Struct, kw_only=True, tag="prepare"):
    """To one worker: run the gate and make the workload."""

    scenario: Scenario
    text_folder: str
    workload_file: str
    seed: int
    run_gate: bool
    output_len: int = 0
    walk_stops: bool = False
    """Keep for the workers how the stream of each row goes on with the scenario's stop strings."""


class PrepareStopsRequest(msgspec.Struct, kw_only=True, tag="prepare-stops"):
    """To one worker: make the workload and the stops, and count their decodes in the streams."""

    scenario: Scenario
    text_folder: str
    workload_file: str
    seed: int
    strings: list[str]
    regexes: list[str]
    given_tokens: list[int]
    """Lengths of synthetic stop strings that count as given."""
    growth_tokens: list[int]
    ids_per_step: list[int]
    intervals: list[int]
    """Empty for requests that do not stream."""


class PrepareEncodeRequest(msgspec.Struct, kw_only=True, tag="prepare-encode"):
    """To one worker: make prompts as text, and the workload of running streams."""

    scenario: Scenario
    text_folder: str
    workload_file: str
    seed: int
    lengths: list[int]
    output_len: int


class PreparedEncode(msgspec.Struct, kw_only=True):
    """The answer to PrepareEncodeRequest."""

    vocabulary: dict[str, Any]
    not_applicable: list[NotApplicable]
    prompts: list[PromptFacts]
    single_calls: list[str]
    """Names of the calls that encode one text; ``list_calls`` of those that encode several."""
    list_calls: list[str]


class LiveEncodeRequest(msgspec.Struct, kw_only=True, tag="live-encode"):
    """To one worker: measure on event loops. Each cell is sent as a part as soon as it is done."""

    workload_file: str
    seed: int
    keep_gc: bool
    duration_s: float
    max_batch: int
    wait_s: float
    t_step_s: float
    admit_every: int
    gil_length: int
    arrivals: list[tuple[int, float]]
    """Length and requests a second; each is encoded in every way."""
    stalls: list[tuple[str, int]]
    """Path and length of the admitted prompts."""


class MeasureRequest(msgspec.Struct, kw_only=True, tag="measure"):
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
    stop_warnings: list[str] = []
    """Of the scenario's stop strings, those that the text of its requests will not contain."""


class PreparedStops(msgspec.Struct, kw_only=True):
    """The answer to PrepareStopsRequest. ``counts`` has one entry a setting, in no set order."""

    vocabulary: dict[str, Any]
    given: list[StopSet]
    growth: list[StopSet]
    windows: dict[str, int | None]
    """Tokens of each set's window at one id a step; None for the whole output."""
    scanned_chars: dict[str, float]
    """Characters that a prefix scan goes through on average, for each stop of the growth."""
    counts: list[StreamCount]
    chars_per_id: float
    stop_warnings: list[str] = []
    """Of the stops given, those that text will not contain."""


class StreamCount(msgspec.Struct, kw_only=True):
    """Decodes and suppressed chunks of all streams at one setting, decodes a request and step."""

    stop: str
    ids_per_step: int
    stream_interval: int | None
    finish: float
    regex_retries: float
    prefix: float
    floor: float
    """Decodes a request and step if nothing is suppressed and a stream never ends."""
    chunks: int = 0
    suppressed: int = 0
    longest_steps: int = 0
    longest_chars: int = 0
    streams: int
    cut_streams: int
    """Streams that a stop would have ended."""


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
                if not path_class.is_engine:
                    cells.append(Cell(path=name, metric="call", batch=batch, threads=threads))
        for prompt_len in scenario.admit_prompt_lens:
            cells.append(Cell(path=name, metric="admit", batch=1, prompt_len=prompt_len))
            cells.append(Cell(path=name, metric="first_token", batch=1, prompt_len=prompt_len))
    return cells


def thread_counts(path_class: PathClass, cpus: int) -> list[int | None]:
    """The thread counts of a path on this machine; 'all' falls away where there is one CPU."""
    counts = [cpus if count == 0 else count for count in path_class.thread_counts]
    return list(dict.fromkeys(counts))
