"""The processes of a pipeline: started, asked, watched, and ended whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any, TypeVar

import msgspec

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.counting import Sample
from detokbench.live.plan import Loaded, StopRequest

_STOP_GRACE_S = 5.0
_WEIGH_NS = 1_000_000_000
_Answer = TypeVar("_Answer", bound=msgspec.Struct)


class ProcessDiedError(DetokbenchError):
    """A process of the run ended by itself; the message says which, how, and its last words."""


class WorkerProcess:
    """One process, and the thread that takes its answers."""

    def __init__(self, name: str, module: str, inbox: Queue[tuple[str, str, Any]]) -> None:
        self.name = name
        self._inbox = inbox
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"},
            start_new_session=True,  # Ctrl-C reaches the supervisor alone
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, request: msgspec.Struct) -> None:
        """Hand over a request; a process that has died says so through the inbox."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = msgspec.json.decode(line)
            self._inbox.put((self.name, message["kind"], message["content"]))
        self._inbox.put((self.name, "died", None))

    def last_words(self) -> str:
        """How it ended, and the last line that it wrote to standard error."""
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{how}: {lines[-1].strip()}" if lines else how

    def close_input(self) -> None:
        """Tell the process that nothing more will come: it ends by itself."""
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def close(self) -> None:
        """End the process: by closing its input, and if that does not help, at once."""
        self.close_input()
        try:
            self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._stderr.close()


class Supervisor:
    """All processes of a pipeline. Use it as a context: leaving it ends them and their folder."""

    def __init__(self, modules: dict[str, str]) -> None:
        """``modules``: the name of each process and the module that it runs."""
        self._inbox: Queue[tuple[str, str, Any]] = Queue()
        self._modules = modules
        self._workers: dict[str, WorkerProcess] = {}
        self._answered: dict[tuple[str, str], Any] = {}
        self._dead: dict[str, DetokbenchError] = {}
        self.samples: dict[str, list[Sample]] = {name: [] for name in modules}
        self.memory: dict[str, list[tuple[int, int]]] = {name: [] for name in modules}
        self.loaded: dict[str, Loaded] = {}
        self._temporary = tempfile.TemporaryDirectory(prefix="detokbench-")
        self.folder = self._temporary.name  # made for this user alone

    def __enter__(self) -> Supervisor:
        try:
            for name, module in self._modules.items():
                self._workers[name] = WorkerProcess(name, module, self._inbox)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.close_input()
        for worker in self._workers.values():
            worker.close()
        self._temporary.cleanup()

    @property
    def workload_file(self) -> str:
        return str(Path(self.folder) / "workload.msgpack")

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        return {name: worker.pid for name, worker in self._workers.items()}

    def begin_run(self) -> None:
        """Forget what was seen of the run before."""
        for name in self._modules:
            self.samples[name].clear()
            self.memory[name].clear()

    def send(self, name: str, request: msgspec.Struct) -> None:
        """Ask something of a process."""
        self._workers[name].send(request)

    def ask(
        self, name: str, request: msgspec.Struct, answer: type[_Answer], timeout_s: float = 120.0
    ) -> _Answer:
        """Ask, and wait for the answer."""
        self.send(name, request)
        return self.wait_for(name, "done", answer, timeout_s)

    def wait_for(
        self, name: str, kind: str, answer: type[_Answer], timeout_s: float = 120.0
    ) -> _Answer:
        """The next answer of this kind from a process.

        Raises ProcessDiedError, or whatever error a process sends, where any of them is at its
        end; DetokbenchError where none comes in time.
        """
        end = time.monotonic() + timeout_s
        while (name, kind) not in self._answered:
            if self._dead:
                raise next(iter(self._dead.values()))
            self._take(end - time.monotonic(), name)
        return msgspec.convert(self._answered.pop((name, kind)), answer)

    def _take(self, timeout_s: float, awaited: str) -> None:
        try:
            sender, kind, content = self._inbox.get(timeout=max(timeout_s, 0.001))
        except Empty:
            raise DetokbenchError(f"the process '{awaited}' does not answer") from None
        if kind == "sample":
            sample = msgspec.convert(content, Sample)
            self.samples[sender].append(sample)
            self._weigh(sender, sample.at_ns)
        elif kind == "error":
            self._dead.setdefault(sender, _error_of(sender, content))
        elif kind == "died":
            why = self._workers[sender].last_words()
            died = ProcessDiedError(f"the process '{sender}' died ({why})")
            self._dead.setdefault(sender, died)
        else:
            self._answered[(sender, kind)] = content

    def _weigh(self, name: str, at_ns: int) -> None:
        """Look at the memory of a process now and then, from outside: that costs it nothing."""
        import psutil

        weighed = self.memory[name]
        if weighed and at_ns - weighed[-1][0] < _WEIGH_NS:
            return
        with suppress(psutil.Error):
            weighed.append((at_ns, psutil.Process(self._workers[name].pid).memory_info().rss))

    def tell_to_stop(self, name: str) -> None:
        """Tell one process to end its run; the others hear of it by its last message."""
        self.send(name, StopRequest())

    def settle(self, names: list[str]) -> None:
        """Wait a while for these to be done, or for one of them to die."""
        self._wait_done(names, lambda: bool(self._dead))

    def _wait_done(self, names: list[str], enough: Callable[[], bool]) -> None:
        end = time.monotonic() + _STOP_GRACE_S
        while time.monotonic() < end and not enough():
            if all(name in self._dead or (name, "done") in self._answered for name in names):
                return
            with suppress(DetokbenchError):
                self._take(0.1, "")

    def stop(self, names: list[str], answer: type[_Answer]) -> dict[str, _Answer]:
        """Tell processes to end their run; what those that still live have measured."""
        for name in names:
            if name not in self._dead and (name, "done") not in self._answered:
                self._workers[name].send(StopRequest())
        self._wait_done(names, lambda: False)
        return {
            name: msgspec.convert(self._answered.pop((name, "done")), answer)
            for name in names
            if (name, "done") in self._answered
        }


def _error_of(sender: str, content: dict[str, Any]) -> DetokbenchError:
    code = ExitCode(content.get("exit_code", ExitCode.BROKEN_SETUP))
    says = content["message"] if "exit_code" in content else f"{sender}: {content['message']}"
    error = DetokbenchError(says, code)
    if "traceback" in content:
        error.add_note(content["traceback"])
    return error
