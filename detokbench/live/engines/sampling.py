"""py-spy on a process of ours, for as long as a run lasts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from detokbench.errors import DetokbenchError

RATE_HZ = 200
_LATE_S = 30


@contextmanager
def sampled(pid: int, seconds: float, folder: Path) -> Iterator[Callable[[], str]]:
    """Sample a process from now on; what is given waits for the end and reads py-spy's raw text.

    Raises DetokbenchError where py-spy is not there, or may not read the process.
    """
    beside = Path(sys.executable).parent / "py-spy"
    program = str(beside) if beside.exists() else shutil.which("py-spy")
    if program is None:
        raise DetokbenchError("there is no py-spy, which comes with detokbench")
    result, log = folder / "samples.txt", folder / "py-spy.log"
    command = [
        program, "record", "--pid", str(pid), "--duration", str(round(seconds)),
        "--rate", str(RATE_HZ), "--format", "raw", "--nolineno", "--output", str(result),
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def read() -> str:
        try:
            process.wait(timeout=seconds + _LATE_S)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.wait() or not result.exists():
            said = log.read_text(errors="replace").strip().splitlines()
            raise DetokbenchError(f"py-spy: {said[-1] if said else 'no word'}")
        return result.read_text()

    try:
        yield read
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
