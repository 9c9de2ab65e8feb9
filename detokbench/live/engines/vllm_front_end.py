"""vLLM's own server as a front end, in Python and in Rust, with our engine behind it.

``vllm serve`` with no engine of its own (``--data-parallel-size-local 0``): it waits on the
handshake port for the one that we start. The Rust front end is the same command with
``VLLM_USE_RUST_FRONTEND=1``: a Python process then shakes hands, and ``vllm-rs`` serves.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.live.engines.control import EngineControl, control_address
from detokbench.live.engines.front_end import Launch, Process, Role
from detokbench.live.engines.server_process import ServerProcess, check_port_free, free_port
from detokbench.live.engines.vllm_engine import EnginePlan
from detokbench.live.engines.vllm_handshake import EngineFacts
from detokbench.live.engines.vllm_versions import Installed, installed_vllm

MODEL_NAME = "detokbench"
_DEFAULT_LENGTH = 8192
_ALL_THERE_S = 20.0
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",  # the CPU platform, also in a wheel built for CUDA
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "NO_COLOR": "1",
}


class VllmFrontEnd:
    """vLLM's API server in Python: HTTP, tokenizer and detokenizer in one process."""

    name = "vllm"
    summary = "vLLM's API server in Python"

    def version(self, python: Path) -> str:
        """The version of vLLM there; see ``vllm_versions.installed_vllm``."""
        return installed_vllm(python).version

    @contextmanager
    def start(self, launch: Launch) -> Iterator[RunningVllm]:
        """Start it; ``launch.front_ends`` are API servers (``--api-server-count``)."""
        with _start(launch, "vllm", rust=False) as running:
            yield running


class VllmRustFrontEnd:
    """vLLM's front end in Rust: one process with threads, whatever ``front_ends`` says."""

    name = "vllm-rs"
    summary = "vLLM's front end in Rust"

    def version(self, python: Path) -> str:
        """The version of vLLM there. Raises DetokbenchError where it comes without ``vllm-rs``."""
        installed = installed_vllm(python)
        if not (Path(installed.package) / "vllm-rs").exists():
            raise DetokbenchError(f"vLLM {installed.version} there has no Rust front end (vllm-rs)")
        return installed.version

    @contextmanager
    def start(self, launch: Launch) -> Iterator[RunningVllm]:
        """Start it. Raises DetokbenchError for more than one front end: it has no such thing."""
        if launch.front_ends != 1:
            raise DetokbenchError("vLLM's Rust front end is one process: --front-ends must be 1")
        self.version(launch.python)
        with _start(launch, "vllm-rs", rust=True) as running:
            yield running


@dataclass(frozen=True)
class RunningVllm:
    """A vLLM server that answers, and our engine behind it."""

    url: str
    version: str
    engine: EngineControl
    server: ServerProcess
    engine_process: ServerProcess
    workers: tuple[int, ...]
    rust: bool
    model: str = MODEL_NAME

    def roles(self) -> dict[str, list[Role]]:
        """``http``: the API servers, which detokenize too; ``rust`` in their place for vllm-rs.

        Where the server's first process only watches the others, it is ``supervisor``.
        """
        engine: list[Role] = [Process(self.engine_process.pid)]
        if not self.workers:
            return {"http": [Process(self.server.pid)], "engine": engine}
        return {
            "rust" if self.rust else "http": [Process(pid) for pid in self.workers],
            "supervisor": [Process(self.server.pid)],
            "engine": engine,
        }

    def log_tail(self) -> str:
        """The last line of the server's log that says something."""
        return self.server.log_tail()

    def check(self) -> None:
        """Raises DetokbenchError where the server, one of its workers or our engine has died."""
        self.engine_process.check()
        self.server.check()
        for pid in self.workers:
            if not _lives(pid):
                raise DetokbenchError(f"a process of {self.server.name} died: {self.log_tail()}")


def _lives(pid: int) -> bool:
    import psutil

    with suppress(psutil.Error):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


def _workers(server: ServerProcess) -> tuple[int, ...]:
    """The processes that serve, where they are not the server's first one."""
    import psutil

    found = []
    for pid in server.descendants():
        try:
            command = " ".join(psutil.Process(pid).cmdline())
        except psutil.Error:
            continue
        helper = "resource_tracker" in command or "forkserver" in command
        if command and not helper:
            found.append(pid)
    return tuple(found)


@contextmanager
def _start(launch: Launch, name: str, rust: bool) -> Iterator[RunningVllm]:
    installed = installed_vllm(launch.python)
    port, handshake = free_port(), free_port()
    command = _command(launch, port, handshake)
    environment = {
        **ENVIRONMENT,
        "VLLM_ENGINE_READY_TIMEOUT_S": str(round(launch.ready_timeout_s)),
        **({"VLLM_USE_RUST_FRONTEND": "1"} if rust else {}),
    }
    with ExitStack() as stack:
        for taken in (port, handshake):
            check_port_free(taken)
        log = launch.folder / "server.log"
        server = stack.enter_context(
            ServerProcess(f"{name} {installed.version}", command, log, environment, launch.folder)
        )
        engine = stack.enter_context(_engine(launch, installed, handshake))
        url = f"http://127.0.0.1:{port}"
        server.wait_ready(f"{url}/health", launch.ready_timeout_s, engine)
        _wait_for_all(server, log, launch.front_ends)
        control = EngineControl(control_address(launch.folder))
        stack.callback(control.close)
        control.wait_until_there(10.0, engine.check)
        workers = _workers(server)
        yield RunningVllm(url, installed.version, control, server, engine, workers, rust)


def _wait_for_all(server: ServerProcess, log: Path, front_ends: int) -> None:
    """Any API server answers for all on the port they share; the log says when each is there.

    A server that keeps its log quieter is believed after a while.
    """
    end = time.monotonic() + _ALL_THERE_S
    while front_ends > 1 and time.monotonic() < end:
        server.check()
        if log.read_bytes().count(b"Application startup complete") >= front_ends:
            return
        time.sleep(0.2)


def _command(launch: Launch, port: int, handshake: int) -> list[str | Path]:
    fixed = [
        "--host", "127.0.0.1", "--port", str(port), "--served-model-name", MODEL_NAME,
        "--data-parallel-size", "1", "--data-parallel-size-local", "0",
        "--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", str(handshake),
        "--api-server-count", str(launch.front_ends),
    ]  # fmt: skip
    program: list[str | Path] = [
        launch.python,
        "-m",
        "vllm.entrypoints.cli.main",
        "serve",
        launch.model.resolve(),
    ]
    return [*program, *fixed, *launch.extra_args]


def _engine(launch: Launch, installed: Installed, handshake: int) -> ServerProcess:
    facts = EngineFacts(installed.version, _longest(launch.model), launch.max_streams)
    plan = EnginePlan(
        handshake=f"tcp://127.0.0.1:{handshake}",
        control=control_address(launch.folder),
        workload_file=str(launch.workload_file),
        layout=installed.layout,
        facts=facts,
        log_stats="--disable-log-stats" not in launch.extra_args,
    )
    command = [sys.executable, "-m", "detokbench.live.engines.vllm_engine"]
    return ServerProcess(
        "our engine", [*command, msgspec.json.encode(plan).decode()], launch.folder / "engine.log"
    )


def _longest(model: Path) -> int:
    """The longest context that the model's configuration names; vLLM takes the smaller one."""
    try:
        config = json.loads((model / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise DetokbenchError(f"{model} is no model folder: {error}") from error
    for part in (config, config.get("text_config") or {}):
        said = part.get("max_position_embeddings")
        if isinstance(said, int):
            return said
    return _DEFAULT_LENGTH
