"""A server of another project, or an engine of ours: started with a log, watched, ended."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from detokbench.errors import DetokbenchError

END_GRACE_S = 5.0
_POLL_S = 0.1
_TAIL_BYTES = 65_536
_LOWEST_PORT = 10_240
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# "(APIServer pid=7) ERROR 12-01 02:57:00 [file.py:12] " and "[2026-12-01 02:57:00 TP0] " and such,
# before what a line says.
_LOG_HEAD = re.compile(
    r"^(\([\w ]+ pid=\d+\) )?(\[\d{4}-[\d-]+ [\d:.,]+[\w ]*\] )?"
    r"((DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+)?"
    r"([\d-]+[ T][\d:.,]+Z?\s+)?(\[[\w./-]+:\d+\]\s?)?"
)
_FAILURE = re.compile(
    r"^([\w.]*(Error|Exception|Interrupt)\b|error:|.*\berror: |thread '.*panicked)"
)


def free_port() -> int:
    """A port of the loopback that nobody listens on, and that no connection will be given.

    A server may take ten seconds to bind it: one of the range from which the system serves
    outgoing connections might be gone by then. Raises DetokbenchError where there is none.
    """
    for port in random.SystemRandom().sample(range(_LOWEST_PORT, _first_ephemeral()), 50):
        with suppress(DetokbenchError):
            check_port_free(port)
            return port
    raise DetokbenchError("no free port on the loopback")


def _first_ephemeral() -> int:
    with suppress(OSError, ValueError, IndexError):
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        if first > _LOWEST_PORT + 1000:
            return first
    return 32_768


def check_port_free(port: int) -> None:
    """Raises DetokbenchError where somebody listens on this port of the loopback."""
    with socket.socket() as probing:
        probing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probing.bind(("127.0.0.1", port))
        except OSError as error:
            raise DetokbenchError(f"port {port} is taken: {error.strerror}") from error


class ServerProcess:
    """A process and all that it starts, as a group of its own; leaving the context ends them.

    The group does not get the terminal's Ctrl-C: the supervisor does, and ends it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Start it. ``environment`` is added to ours; ``folder`` is its current folder.

        Raises DetokbenchError where the program cannot be started.
        """
        self.name = name
        self._log = log
        with log.open("wb") as output:
            try:
                self._process = subprocess.Popen(
                    [str(part) for part in command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(environment or {})},
                    cwd=folder,
                    start_new_session=True,
                )
            except OSError as error:
                raise DetokbenchError(f"cannot start {name}: {error}") from error

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    def descendants(self) -> list[int]:
        """Ids of the processes that it has started, and those that these have."""
        return [child.pid for child in self._children()]

    def _children(self) -> list[Any]:
        import psutil

        with suppress(psutil.Error):
            return list(psutil.Process(self.pid).children(recursive=True))
        return []

    def log_tail(self) -> str:
        """The last line of its log that says something."""
        return tail_of(self._log)

    def check(self) -> None:
        """Raises DetokbenchError with the log's tail where it has ended."""
        code = self._process.poll()
        if code is not None:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise DetokbenchError(f"{self.name} has ended ({how}): {self.log_tail()}")

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code (a signal's negated) once it has ended; None where it has not in time."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout=timeout_s)
        return None

    def wait_ready(self, url: str, timeout_s: float, *others: ServerProcess) -> None:
        """Wait until ``url`` answers with 200.

        Raises DetokbenchError with the log's tail where it, or one of the ``others`` that it
        needs, ends before, or nothing comes within ``timeout_s``.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            for process in (*others, self):
                process.check()
            if _answers(url):
                return
            time.sleep(_POLL_S)
        raise DetokbenchError(
            f"{self.name} is not ready after {timeout_s:g} s; its last words: {self.log_tail()}"
        )

    def end(self, grace_s: float = END_GRACE_S) -> None:
        """End it and all that it has started: SIGTERM, and after ``grace_s`` SIGKILL.

        A second Ctrl-C during the grace only shortens it.
        """
        started = self._children()
        try:
            self._signal(signal.SIGTERM)
            self._process.wait(timeout=grace_s)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            started += self._children()
        finally:
            self._signal(signal.SIGKILL)
            for child in started:  # some may have left the group
                _kill(child)
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        # The group outlives its first process while others are in it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _kill(process: Any) -> None:
    """Kill a process by psutil, which knows one whose id another has got since."""
    import psutil

    with suppress(psutil.Error):
        process.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def tail_of(log: Path) -> str:
    """The last line of a log that names a failure, else the last one that says anything."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return "no log"
    lines = [_LOG_HEAD.sub("", _COLOUR.sub("", line)).strip() for line in text.splitlines()]
    lines = [line for line in lines if line and set(line) - set("^~-=# ")]
    named = [line for line in _failures(lines) if "root cause above" not in line]
    # Weaker than a failure that has a name: SGLang's word on a process that was killed.
    named = named or [line for line in lines if "crashed with exit code" in line]
    if named:
        return named[-1]
    return lines[-1] if lines else "it wrote nothing"


def _failures(lines: list[str]) -> list[str]:
    """Lines that name a failure; what ``Caused by:`` introduces is one too."""
    return [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if _FAILURE.match(line) or before == "Caused by:"
    ]
