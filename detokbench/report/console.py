"""The console that all screens are printed on."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rich.console import Console

_WIDTH_OF_A_FILE = 120


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Rich would end the process with exit code 1; a reader that leaves is no error."""
        raise BrokenPipeError


def make_console() -> Console:
    """A console on standard output, as wide as the terminal; into a file or pipe, wide enough."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return _Console()
    return _Console(width=_WIDTH_OF_A_FILE)
