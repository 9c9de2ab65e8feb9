"""A pipeline is made: its processes are started, loaded, pinned, and their clocks compared."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from detokbench.bench.machine import usable_cpus
from detokbench.errors import DetokbenchError
from detokbench.live.plan import Arrival, Loaded, LoadRequest, Topology
from detokbench.live.schedule import check_shared_clock, now_ns
from detokbench.live.supervise import Supervisor
from detokbench.live.topology import ENGINE, Processes
from detokbench.workload.scenario import Scenario

_ROWS_AT_LEAST = 64
_ROWS_AT_MOST = 1024
# Python's lists of ids in the engine and the path's state of a row, counted generously.
_BYTES_A_TOKEN = 200
_BYTES_A_REQUEST = 20_000
_FILES_BESIDE = 64


@dataclass(frozen=True)
class Asked:
    """What is to be run."""

    topology: Topology
    path: str
    scenario: Scenario
    text_folder: Path
    t_step_s: float
    interval: int
    stop: list[str]
    front_ends: int
    detokenizers: int
    chunk_size: int
    arrival: Arrival
    rate: float
    max_tokens: int
    http: bool
    seed: int
    trust_remote_code: bool

    @property
    def processes(self) -> Processes:
        return Processes.of(self.topology, self.front_ends, self.detokenizers, self.http)


def check_room(asked: Asked, batch: int) -> None:
    """Raises DetokbenchError where a batch does not fit: into memory, or into open files."""
    tokens = asked.scenario.prompt_len + asked.max_tokens
    needed = batch * (tokens * _BYTES_A_TOKEN + _BYTES_A_REQUEST)
    there = psutil.virtual_memory().available
    if needed > there:
        raise DetokbenchError(
            f"a batch of {batch:,} needs about {needed / 1e9:.1f} GB, and {there / 1e9:.1f} GB of "
            "memory are free; take a smaller --batch or --max-tokens"
        )
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    streams = batch + batch // 8 + _FILES_BESIDE
    if asked.http and files != resource.RLIM_INFINITY and streams > files:
        raise DetokbenchError(
            f"a batch of {batch:,} needs {streams:,} connections, and a process may have "
            f"{files:,} open files here; raise the limit (ulimit -n) or use --no-http"
        )


def load(supervisor: Supervisor, asked: Asked, largest_batch: int) -> None:
    """Load all processes at once. Raises DetokbenchError where one cannot be, or has other time."""
    check_shared_clock()
    processes = asked.processes
    cpus = processes.cpus(usable_cpus())
    request = LoadRequest(
        topology=asked.topology,
        vocabulary=asked.scenario.vocabulary,
        trust_remote_code=asked.trust_remote_code,
        path=asked.path,
        stop=asked.stop,
        workload_file=supervisor.workload_file,
        cpus=None,
        seed=asked.seed,
    )
    for name in processes.names:
        mine = msgspec.structs.replace(request, cpus=cpus[name])
        if name == ENGINE:
            mine = msgspec.structs.replace(
                mine,
                scenario=asked.scenario,
                text_folder=str(asked.text_folder),
                rows=min(max(largest_batch, _ROWS_AT_LEAST), _ROWS_AT_MOST),
                output_len=asked.max_tokens,
            )
        supervisor.send(name, mine)
    before = now_ns()
    loaded = {
        name: supervisor.wait_for(name, "loaded", Loaded, timeout_s=300) for name in processes.names
    }
    after = now_ns()
    for name, answer in loaded.items():
        if not before <= answer.clock_ns <= after:
            raise DetokbenchError(f"the clock of the process '{name}' is not the supervisor's")
    supervisor.loaded = loaded
