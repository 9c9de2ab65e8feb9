"""The manager: starts fresh worker processes, lets them measure one after the other, collects.

Workers load their vocabulary while others wait or load, as many at a time as there are CPUs, but
only one measures at any moment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from detokbench.bench.machine import usable_cpus
from detokbench.bench.plan import (
    Cell,
    CellFacts,
    Effort,
    LoadRequest,
    Measured,
    MeasureRequest,
    Prepared,
    PrepareRequest,
)
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.interrupts import uninterrupted
from detokbench.records.schema import ProcessRun
from detokbench.run_folder import RunFolder
from detokbench.workload.scenario import Scenario

_LOADED_AT_ONCE = 4  # workers, about half a gigabyte each; more than CPUs, as imports wait for disk
Progress = Callable[[float], None]
"""Takes the share of the run that is done, 0 to 1."""


class WorkerProcess:
    """One worker: a child process that loads, waits for its turn, and answers once."""

    def __init__(self, load: LoadRequest) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "detokbench.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_worker_environment(),
            start_new_session=True,  # Ctrl-C reaches the manager alone, which then ends its workers
        )
        self._ready = False
        self._at = ""  # the path at work, for when the process dies of it
        self._send(load)

    def _send(self, message: msgspec.Struct) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._receive()  # says why it died
            raise

    def wait_until_ready(self) -> None:
        """Return once the vocabulary is loaded. Raises DetokbenchError where it cannot be."""
        if not self._ready:
            self._receive()
            self._ready = True

    def ask(
        self,
        request: msgspec.Struct,
        progress: Progress | None = None,
        take_part: Callable[[Any], None] | None = None,
    ) -> Any:
        """Send the one request and return the content of its answer; parts come before it."""
        self.wait_until_ready()
        self._send(request)
        while True:
            kind, content = self._receive()
            if kind == "at":
                self._at = content
            elif kind == "part" and take_part is not None:
                take_part(content)
            elif kind != "progress":
                return content
            elif progress is not None:
                progress(content)

    def _receive(self) -> tuple[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            at = f" at {self._at}" if self._at else ""
            raise DetokbenchError(f"a worker process died{at} ({self._last_words()})")
        message = msgspec.json.decode(line)
        if message["kind"] == "error":
            raise _error_of(message["content"])
        return message["kind"], message["content"]

    def _last_words(self) -> str:
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{how}: {lines[-1]}" if lines else how

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def _worker_environment() -> dict[str, str]:
    return {**os.environ, "TRANSFORMERS_VERBOSITY": "error"}


def _error_of(content: dict[str, Any]) -> DetokbenchError:
    error = DetokbenchError(
        content["message"], ExitCode(content.get("exit_code", ExitCode.BROKEN_SETUP))
    )
    if "traceback" in content:
        error.add_note(content["traceback"])
    return error


class Manager:
    """The workers of one run. Use it as a context: leaving it ends every child."""

    def __init__(self, load: LoadRequest, processes: int, alone: int = 0) -> None:
        """``processes`` is how many measure; ``alone`` how often ``ask_alone`` will be called."""
        self._load = load
        self._to_start = processes + alone + 1  # one more, which prepares
        self._waiting: list[WorkerProcess] = []
        self._folder = RunFolder()
        self.workload_file = str(Path(self._folder.name) / "workload.msgpack")
        self.processes = processes
        self.cpus = usable_cpus()

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_: object) -> None:
        with uninterrupted():
            for worker in self._waiting:
                worker.close()
            self._folder.close()

    def _start(self, most: int) -> None:
        count = min(self._to_start, most)
        self._to_start -= count
        with uninterrupted():  # a worker that is started and not listed would not be ended
            self._waiting.extend(WorkerProcess(self._load) for _ in range(count))

    @contextmanager
    def _taken(self, worker: WorkerProcess) -> Iterator[WorkerProcess]:
        """A worker for its one request; it is ended afterwards."""
        try:
            yield worker
        finally:
            self._waiting.remove(worker)
            worker.close()

    def prepare(
        self,
        scenario: Scenario,
        text_folder: Path,
        seed: int,
        run_gate: bool,
        output_len: int = 0,
        walk_stops: bool = False,
    ) -> Prepared:
        """Run the gate and make the workload, in a process that measures nothing.

        The first workers that will measure load meanwhile.
        """
        request = PrepareRequest(
            scenario=scenario,
            text_folder=str(text_folder),
            workload_file=self.workload_file,
            seed=seed,
            run_gate=run_gate,
            output_len=output_len,
            walk_stops=walk_stops,
        )
        return msgspec.convert(self.ask_first(request), Prepared)

    def ask_first(self, request: msgspec.Struct) -> Any:
        """The answer to a request that comes before measuring, from a process that does not."""
        self._start(max(2, len(self.cpus)))
        with self._taken(self._waiting[0]) as worker:
            worker.wait_until_ready()
            self._start(_LOADED_AT_ONCE + 1 - len(self._waiting))
            return worker.ask(request)

    def _next_alone(self) -> WorkerProcess:
        """A fresh worker, when all that have been started are done loading and none disturbs it.

        Starting several at once hides the loading.
        """
        if not self._waiting:
            self._start(max(_LOADED_AT_ONCE, len(self.cpus)))
        for worker in self._waiting:
            worker.wait_until_ready()
        return self._waiting[0]

    def ask_alone(self, request: msgspec.Struct, take_part: Callable[[Any], None]) -> None:
        """Ask a fresh worker that nothing disturbs, and take the parts of its answer."""
        with self._taken(self._next_alone()) as worker:
            worker.ask(request, take_part=take_part)

    def measure(
        self,
        cells: Sequence[Cell],
        scenario: Scenario,
        effort: Effort,
        seed: int,
        keep_gc: bool,
        progress: Progress,
    ) -> Iterator[tuple[ProcessRun, dict[Cell, CellFacts]]]:
        """Time the cells in one fresh process after the other; yields each as it is done.

        CPUs are taken in turn, so that one with a noisy neighbour shows in the spread.
        """
        for number in range(self.processes):
            request = MeasureRequest(
                cells=list(cells),
                workload_file=self.workload_file,
                scenario=scenario,
                effort=effort,
                cpu=self.cpus[-1 - number % len(self.cpus)],
                seed=seed * 1000 + number,
                keep_gc=keep_gc,
            )
            with self._taken(self._next_alone()) as worker:
                answer = worker.ask(request, _share_of_run(progress, number, self.processes))
            measured = msgspec.convert(answer, Measured)
            yield measured.process, dict(measured.facts)


def _share_of_run(progress: Progress, number: int, processes: int) -> Progress:
    """Progress within one process as progress of the whole run."""
    return lambda share: progress((number + share) / processes)
