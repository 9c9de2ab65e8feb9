"""The processes of a pipeline together: started, asked, watched, and ended whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TypeVar

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.interrupts import uninterrupted
from detokbench.live.counting import Sample
from detokbench.live.plan import Loaded, StopRequest
from detokbench.live.worker_process import WorkerProcess, error_of
from detokbench.run_folder import RunFolder

_STOP_GRACE_S = 5.0
_WEIGH_NS = 1_000_000_000
_Answer = TypeVar("_Answer", bound=msgspec.Struct)


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
        self._temporary = RunFolder()
        self.folder = self._temporary.name

    def __enter__(self) -> Supervisor:
        try:
            for name, module in self._modules.items():
                self._workers[name] = WorkerProcess(name, module, self._inbox)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with uninterrupted():
            for worker in self._workers.values():
                worker.close_input()
            for worker in self._workers.values():
                worker.close()
            self._temporary.close()

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
            self._dead.setdefault(sender, error_of(sender, content))
        elif kind == "died":
            self._dead.setdefault(sender, self._workers[sender].death())
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
