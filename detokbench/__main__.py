"""``detokbench`` and ``python -m detokbench``: what must hold before anything else is imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TextIO

_INTERRUPTED = 130


def entry_point() -> None:
    """The console script. SIGTERM and a closed terminal are taken like Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _interrupt)
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # it warns that torch is missing
    sys.stdout, sys.stderr = _usable(sys.stdout), _usable(sys.stderr)
    try:
        from detokbench.cli import main

        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _usable(stream: TextIO | None) -> TextIO:
    """A stream that takes any character; one that was closed swallows all."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 (for the whole run)
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    return stream


if __name__ == "__main__":
    entry_point()
