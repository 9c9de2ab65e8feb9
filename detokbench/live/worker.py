"""What every process of a run has in common: it reads requests, does them, and answers.

Requests come as lines of JSON on standard input, read by a thread, so that a run can be told to
stop; answers go to standard output. A process ends when its input closes, and on Linux with its
supervisor, however that ends. Ctrl-C reaches the supervisor alone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, BinaryIO, Protocol

import msgspec

from detokbench.bench.machine import pin_to
from detokbench.errors import DetokbenchError
from detokbench.live.open_files import allow_many_files
from detokbench.live.plan import Loaded, LoadRequest, Request, StopRequest
from detokbench.live.schedule import now_ns

_PR_SET_PDEATHSIG = 1


class Role(Protocol):
    """What one kind of process does."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
        """Get ready; may add to what is answered."""

    def do(self, request: Any, control: Control) -> msgspec.Struct:
        """Do one request and return the answer."""


class Control:
    """The line to the supervisor, shared by the thread that reads it and the work."""

    def __init__(self, answers: BinaryIO, known: Any = Request) -> None:
        """``known``: the structs that requests are made from."""
        self._answers = answers
        self._known = known
        self._lock = threading.Lock()
        self._on_stop: Callable[[], object] | None = None
        self.stopping = False
        self.requests: SimpleQueue[Any] = SimpleQueue()

    def send(self, kind: str, content: Any) -> None:
        """Answer one line; also from a run that goes on."""
        line = msgspec.json.encode({"kind": kind, "content": content}) + b"\n"
        with self._lock:
            self._answers.write(line)
            self._answers.flush()

    def on_stop(self, call: Callable[[], object] | None) -> None:
        """What to do when told to stop; it is called from the reading thread."""
        with self._lock:
            self._on_stop = call
            told = self.stopping
        if told and call is not None:
            call()

    def read(self, stream: BinaryIO) -> None:
        """Take requests until the input closes: a stop acts at once, the others wait in line."""
        for line in stream:
            request = msgspec.json.decode(line, type=self._known)
            if isinstance(request, StopRequest):
                self._stop()
            else:
                self.requests.put(request)
        self.requests.put(None)
        self._stop()

    def _stop(self) -> None:
        with self._lock:
            self.stopping = True
            call = self._on_stop
        if call is not None:
            call()


def serve(role: Role, known: Any = Request) -> None:
    """Run a process of this role until its input closes; ``known`` is what it may be asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    control = Control(_answers_apart(), known)
    threading.Thread(target=control.read, args=[sys.stdin.buffer], daemon=True).start()
    try:
        while (request := control.requests.get()) is not None:
            if isinstance(request, LoadRequest):
                control.send("loaded", _load(role, request))
            else:
                control.send("done", role.do(request, control))
                control.stopping = False
    except DetokbenchError as error:
        control.send("error", {"message": str(error), "exit_code": int(error.exit_code)})
    except Exception as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"
        control.send("error", {"message": message, "traceback": traceback.format_exc()})


def _load(role: Role, request: LoadRequest) -> Loaded:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    allow_many_files()
    loaded = Loaded(pid=os.getpid(), clock_ns=0, pinned=False)
    # Threads that ZMQ and others start inherit this, so it comes before any of them.
    loaded.pinned = pin_to(request.cpus)
    role.load(request, loaded)
    # As vLLM does once it has started: what is loaded by now is never looked at again.
    gc.collect()
    gc.freeze()
    loaded.clock_ns = now_ns()
    return loaded


def _answers_apart() -> BinaryIO:
    """Standard output for answers alone: what a library prints goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers
