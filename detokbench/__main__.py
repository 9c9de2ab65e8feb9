"""``detokbench`` and ``python -m detokbench``: what must hold before anything else is imported."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from detokbench.interrupts import ignore_interrupts, take_first_interrupt

_INTERRUPTED = 130


def entry_point() -> None:
    """The console script. SIGTERM and a closed terminal are taken like Ctrl-C."""
    take_first_interrupt()
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # it warns that torch is missing
    sys.stdout, sys.stderr = _usable(sys.stdout), _usable(sys.stderr)
    try:
        from detokbench.cli import main

        code = main()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    ignore_interrupts()
    _let_go(sys.stdout)
    sys.exit(code)


def _let_go(stream: TextIO) -> None:
    """What a full disk did not take must not fail once more, and decide the exit code, at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _usable(stream: TextIO | None) -> TextIO:
    """A stream that takes any character; one that was closed swallows all."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 (for the whole run)
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    return stream


if __name__ == "__main__":
    entry_point()
