"""What a record says of its origin, without folders, users or hosts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


def utc_now() -> str:
    """This second, as ISO 8601 in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def command_line(arguments: Sequence[str]) -> list[str]:
    """A command line whose paths are reduced to file names; ``--out=a/b.json`` included."""
    return ["detokbench", *(_without_folder(argument) for argument in arguments[1:])]


def _without_folder(argument: str) -> str:
    option, equals, value = argument.partition("=")
    if equals and option.startswith("-"):
        return f"{option}={file_name(value)}"
    return file_name(argument)


def file_name(path: str) -> str:
    """The last part of a path; a hub id (``owner/model``, no such folder here) is kept whole."""
    parts = Path(path).parts
    is_local = len(parts) > 2 or path.startswith((".", "/", "~")) or _exists(path)
    return parts[-1] if is_local and parts else path


def _exists(path: str) -> bool:
    with suppress(OSError):  # a text that is too long for a path is none
        return Path(path).exists()
    return False
