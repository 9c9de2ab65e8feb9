"""SGLang's own server as a front end, in Python and in Rust, with our engine as its scheduler.

``sglang.launch_server`` starts the processes; that of the scheduler finds our plug-in
(``sglang_plugin``) through an entry point in the run's folder, which is on its PYTHONPATH. With
``SGLANG_RUST_SERVER=1`` the whole front end is threads of the scheduler's process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from detokbench.errors import DetokbenchError
from detokbench.live.engines import sglang_plugin
from detokbench.live.engines.control import EngineControl, control_address
from detokbench.live.engines.front_end import Launch, Process, Role, Threads
from detokbench.live.engines.server_process import ServerProcess, check_port_free, free_port
from detokbench.live.engines.sglang_folder import PLUGIN_NAME, lay_plugin
from detokbench.live.engines.sglang_versions import installed_sglang

MODEL_NAME = "detokbench"
# Threads of the Rust server in the scheduler's process (rust/sglang-server), by their names.
RUST_THREADS = (
    "api-runtime",
    "detokenizer-",
    "from-scheduler-",
    "to-scheduler-",
    "tokenizer-",
    "tokio-",
    "tracing-",
)
# When one of its processes has gone, SGLang sleeps for five seconds before it ends itself.
_END_GRACE_S = 1.0
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "NO_COLOR": "1",
    # /health then tells whether the server has started, without a request of its own.
    "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0",
}


class SglangFrontEnd:
    """SGLang's server in Python: HTTP and tokenizer in one process, the detokenizer in another."""

    name = "sglang"
    summary = "SGLang's server in Python"

    def version(self, python: Path) -> str:
        """The version of SGLang there; see ``sglang_versions.installed_sglang``."""
        return installed_sglang(python).version

    @contextmanager
    def start(self, launch: Launch) -> Iterator[RunningSglang]:
        """Start it; ``launch.front_ends`` are HTTP processes (``--tokenizer-worker-num``)."""
        with _start(launch, self.name, rust=False) as running:
            yield running


class SglangRustFrontEnd:
    """SGLang's server in Rust: threads of the scheduler's process, where our engine is, too."""

    name = "sglang-rs"
    summary = "SGLang's server in Rust"

    def version(self, python: Path) -> str:
        """The version of SGLang there. Raises DetokbenchError where it has no Rust server."""
        return installed_sglang(python, rust=True).version

    @contextmanager
    def start(self, launch: Launch) -> Iterator[RunningSglang]:
        """Start it; ``launch.front_ends`` are threads that tokenize."""
        with _start(launch, self.name, rust=True) as running:
            yield running


@dataclass(frozen=True)
class RunningSglang:
    """An SGLang server that answers, and our engine as its scheduler."""

    url: str
    version: str
    engine: EngineControl
    server: ServerProcess
    folder: Path
    rust: bool
    model: str = MODEL_NAME

    def roles(self) -> dict[str, list[Role]]:
        """``http``, ``detokenizer`` and ``engine``; or ``rust``, ``engine`` and ``supervisor``.

        With several HTTP processes ``router`` hands them what comes back; so does that of several
        detokenizers, as ``detokenizer_router``. SGLang names its processes by their titles.
        """
        titled = _titles(self.server)
        scheduler = titled.pop("scheduler", [])
        if self.rust:
            return {
                "rust": [Threads(pid, RUST_THREADS) for pid in scheduler],
                "engine": [Threads(pid) for pid in scheduler],
                "supervisor": [Process(self.server.pid)],
            }
        workers = titled.pop("tokenizer_worker", [])
        roles: dict[str, list[Role]] = {"http": [Process(pid) for pid in workers]}
        roles["router" if workers else "http"] = [Process(self.server.pid)]
        roles |= {title: [Process(pid) for pid in pids] for title, pids in titled.items()}
        roles["engine"] = [Process(pid) for pid in scheduler]
        return roles

    def stop_check_missing(self) -> str:
        """Why the engine does not look for stop strings, as SGLang's scheduler would; '' if so."""
        notes = json.loads((self.folder / sglang_plugin.NOTES_FILE).read_text())
        missing: str = notes["stop_check_missing"]
        return missing

    def log_tail(self) -> str:
        """The last line of the server's log that says something."""
        return self.server.log_tail()

    def check(self) -> None:
        """Raises DetokbenchError with the log's tail where the server has died."""
        self.server.check()


def _titles(server: ServerProcess) -> dict[str, list[int]]:
    """Processes by the titles that SGLang gives them: ``sglang::scheduler_TP0`` is a scheduler."""
    import psutil

    found: dict[str, list[int]] = {}
    for pid in server.descendants():
        try:
            title = (psutil.Process(pid).cmdline() or [""])[0]
        except psutil.Error:
            continue
        if title.startswith("sglang::"):
            name = title.removeprefix("sglang::").split(":")[0].split()[0]
            known = "scheduler" if name.startswith("scheduler") else name
            found.setdefault(known, []).append(pid)
    return found


@contextmanager
def _start(launch: Launch, name: str, rust: bool) -> Iterator[RunningSglang]:
    installed = installed_sglang(launch.python, rust)
    port = free_port()
    plugin = lay_plugin(launch.folder)
    environment = {
        **_ENVIRONMENT,
        sglang_plugin.FOLDER_VARIABLE: str(launch.folder),
        sglang_plugin.WORKLOAD_VARIABLE: str(launch.workload_file),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(plugin), os.environ.get("PYTHONPATH")])),
        "SGLANG_PLUGINS": PLUGIN_NAME,
        # A busy machine may need longer for the imports of a worker than the ten seconds of this.
        "SGLANG_UVICORN_WORKER_HEALTHCHECK_TIMEOUT": str(max(1, round(launch.ready_timeout_s))),
        "SGLANG_RUST_SERVER": "1" if rust else "0",
    }
    with ExitStack() as stack:
        check_port_free(port)
        log = launch.folder / "server.log"
        server = stack.enter_context(
            ServerProcess(
                f"{name} {installed.version}", _command(launch, port), log, environment,
                launch.folder,
            )
        )  # fmt: skip
        stack.callback(server.end, _END_GRACE_S)
        url = f"http://127.0.0.1:{port}"
        control = EngineControl(control_address(launch.folder))
        stack.callback(control.close)
        server.wait_ready(f"{url}/health", launch.ready_timeout_s)
        _check_ours(control, server)
        yield RunningSglang(url, installed.version, control, server, launch.folder, rust)


def _check_ours(control: EngineControl, server: ServerProcess) -> None:
    try:
        control.wait_until_there(10.0, server.check)
    except DetokbenchError as error:
        raise DetokbenchError(
            f"{server.name} serves, but not with our engine: {error}; its last words: "
            f"{server.log_tail()}"
        ) from error


def _command(launch: Launch, port: int) -> list[str | Path]:
    return [
        launch.python, "-m", "sglang.launch_server", "--model-path", launch.model.resolve(),
        "--served-model-name", MODEL_NAME, "--device", "cpu",
        "--host", "127.0.0.1", "--port", str(port),
        "--tokenizer-worker-num", str(launch.front_ends), *launch.extra_args,
    ]  # fmt: skip
