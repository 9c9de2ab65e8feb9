"""A worker process as its supervisor holds it: started, sent requests, heard, and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from queue import Queue
from typing import IO, Any

import msgspec

from detokbench.errors import DetokbenchError, ExitCode


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

    def death(self) -> ProcessDiedError:
        """How it ended, and the last line that it wrote to standard error."""
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        why = f"{how}: {lines[-1].strip()}" if lines else how
        return ProcessDiedError(f"the process '{self.name}' died ({why})")

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


def error_of(name: str, content: dict[str, Any]) -> DetokbenchError:
    """The error that a process sent, with its exit code and its traceback where it sent them."""
    code = ExitCode(content.get("exit_code", ExitCode.BROKEN_SETUP))
    says = content["message"] if "exit_code" in content else f"{name}: {content['message']}"
    error = DetokbenchError(says, code)
    if "traceback" in content:
        error.add_note(content["traceback"])
    return error
