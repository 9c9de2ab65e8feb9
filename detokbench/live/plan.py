"""What the supervisor asks of a run's processes, and what they answer: one JSON line each."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from detokbench.live.counting import Sample
from detokbench.workload.scenario import Scenario

Topology = Literal["vllm", "sglang"]
Arrival = Literal["closed", "poisson"]
Part = Literal["decode", "stop", "floor", "queue"]


class LoadRequest(msgspec.Struct, tag="load", kw_only=True):
    """Sent once: what a process works with through all runs."""

    topology: Topology
    vocabulary: str
    trust_remote_code: bool
    path: str
    stop: list[str]
    workload_file: str
    cpus: list[int] | None
    seed: int
    scenario: Scenario | None = None
    """With it the process makes the workload and writes the file; the others read it."""
    text_folder: str = ""
    rows: int = 0
    output_len: int = 0


class RunRequest(msgspec.Struct, tag="run", kw_only=True):
    """One run. ``sends_to``: addresses of the next processes; ``announce_to``: the clients'.

    ``only_receive`` is the calibration of the wire: what comes is unpacked and dropped.
    """

    name: str
    folder: str
    batch: int
    t_step_ns: int
    duration_s: float
    warm_up_s: float
    interval: int = 1
    chunk_size: int = 128
    arrival: Arrival = "closed"
    rate: float = 0.0
    max_tokens: int
    http: bool = False
    sends_to: list[str] = []
    announce_to: str | None = None
    urls: list[int] = []
    abort_to: str = ""
    front_ends: int = 1
    detokenizers: int = 1
    only_receive: bool = False


class CalibrateRequest(msgspec.Struct, tag="calibrate", kw_only=True):
    """Do one part of the work over steps made on the spot, without a pace.

    ``floor`` is the loop of ``decode`` around a path that does nothing.
    """

    part: Part
    batch: int
    interval: int
    chunk_size: int
    max_tokens: int
    seconds: float


class CheckRequest(msgspec.Struct, tag="check", kw_only=True):
    """Compare texts that arrived with those of the ids sent: (request, text, how it ended)."""

    texts: list[tuple[int, str, str]]


class BlastRequest(msgspec.Struct, tag="blast", kw_only=True):
    """Send canned streams as fast as they are read, for so many seconds, to whoever connects."""

    streams: int
    seconds: float


class ReadBlastRequest(msgspec.Struct, tag="read_blast", kw_only=True):
    """Read canned streams from a port until they end."""

    port: int
    streams: int


class StopRequest(msgspec.Struct, tag="stop"):
    """End the run now; what was measured is answered as usual."""


Request = (
    LoadRequest
    | RunRequest
    | CalibrateRequest
    | CheckRequest
    | BlastRequest
    | ReadBlastRequest
    | StopRequest
)


class Loaded(msgspec.Struct, kw_only=True):
    """A process is ready. ``clock_ns`` lets the supervisor see that the clock is shared."""

    pid: int
    clock_ns: int
    pinned: bool
    vocabulary: dict[str, Any] = {}
    abort_address: str = ""


class Bound(msgspec.Struct, kw_only=True):
    """A process listens: where steps go, and the port of its HTTP streams."""

    address: str
    port: int = 0


class Stream(msgspec.Struct, array_like=True):
    """One sampled request as its reader saw it: the text, and how it ended."""

    request: int
    text: str
    finish: str


class Done(msgspec.Struct, kw_only=True):
    """What one process measured in one run; times in ns. Lists of (value, weight)."""

    first: Sample
    last: Sample
    longest_block_ns: int = 0
    chunks_put: int = 0
    dropped_ids: int = 0
    aborts: int = 0
    itl: list[tuple[int, int]] = []
    gaps: list[tuple[int, int]] = []
    delays: dict[str, list[tuple[int, int]]] = {}
    """Hop → delays since the engine's emission."""
    streams: list[Stream] = []
    engine: EngineFacts | None = None
    states_left: int = 0


class EngineFacts(msgspec.Struct, kw_only=True):
    """How the engine kept its schedule, and what it did."""

    start_ns: int
    end_ns: int
    steps: int
    late_steps: int
    drift_ns: int
    worst_ns: int
    requests: int
    finished: int
    aborted: int
    check_ns: int = 0
    """In the stop checks, all steps together."""


class Cost(msgspec.Struct, kw_only=True):
    """A calibration's answer: CPU seconds for so many steps of so many rows."""

    cpu_s: float
    wall_s: float
    steps: int
    rows: int
    chunks: int = 0
