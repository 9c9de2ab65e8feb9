"""The console that all screens are printed on."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Rich would end the process with exit code 1; a reader that leaves is no error."""
        raise BrokenPipeError


def make_console() -> Console:
    """A console on standard output, as wide as the terminal."""
    return _Console()
