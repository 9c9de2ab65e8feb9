"""A file of cases as it is written: its keys, their types, and errors with the line.

What the keys mean is in ``cases.py``; the README describes them for those who write cases.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import msgspec

from detokbench.errors import DetokbenchError, usage_error
from detokbench.workload.toml_lines import KeyLines, KeyPath, error_line, explain, key_name

End = Literal["length", "stop-id", "open"]
"""How a stream ends: at its length, at a stop id as its last, or not yet."""
_ENDS_EXPECTED = f"expected one of {', '.join(get_args(End))}, got"


class ExpectTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The table ``[case.expect]``: the right values. What is left out is not compared.

    ``deltas`` are what one id a step sends: a text for each id, and one more for what the end
    gives, which may be left out. ``stop`` is the stop string, the regex or the stop id that fired,
    and false for none. ``kept_ids`` are the ids of the output that stay.
    """

    text: str | None = None
    deltas: tuple[str, ...] | None = None
    stop: str | int | bool | None = None
    kept_ids: tuple[Any, ...] | None = None


class RowTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One stream. Prompt and output are text or lists of ids; an output's ids may be anything."""

    prompt: str | tuple[int, ...] = ()
    output: str | tuple[Any, ...] = ()
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    stop: tuple[str, ...] = ()
    stop_regex: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()
    min_tokens: int = 0
    keep_stop: bool = False
    end: End = "length"
    expect: ExpectTable | None = None


class CaseTable(RowTable, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table ``[[case]]``: one stream, or several in its tables ``[[case.row]]``.

    ``differ`` has the paths that are known to give something else, each with what that is, in
    words for readers.
    """

    name: str
    title: str
    vocabulary: str
    report: str = ""
    ids_per_step: int | str | tuple[int | str, ...] = ()
    differ: dict[str, str] = {}
    row: tuple[RowTable, ...] = ()


class CaseFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    case: tuple[CaseTable, ...]


class Places:
    """Says where in a file something is: its name, the line, the key."""

    def __init__(self, file_name: str, text: str) -> None:
        self.file_name = file_name
        self._lines = KeyLines(text)

    def place(self, path: KeyPath) -> str:
        """``cases mine.toml, line 12: case[2].expect.text``; positions count from 0."""
        line = f"cases {self.file_name}, line {self._lines[path]}"
        return f"{line}: {key_name(path)}" if path else line

    def refuse(self, path: KeyPath, why: str) -> NoReturn:
        """Raise the usage error for a value that cannot be right."""
        raise usage_error(f"{self.place(path)}: {why}")


def read_case_file(path: Path) -> tuple[CaseFile, Places]:
    """A file whose keys and types are right.

    Raises DetokbenchError: exit code 2, with the line, for what does not fit; 5 for a file that
    cannot be read.
    """
    text = _read(path)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = error_line(text, error)
        raise usage_error(f"cases {path.name}, line {line}: not TOML: {error}") from error
    except RecursionError as error:
        raise usage_error(f"cases {path.name}: too many lists or tables in each other") from error
    places = Places(path.name, text)
    try:
        return msgspec.convert(tables, CaseFile), places
    except msgspec.ValidationError as error:
        where, why = explain(str(error))
        places.refuse(where, why.replace("invalid enum value", _ENDS_EXPECTED))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # editors may write a BOM
    except UnicodeDecodeError as error:
        raise usage_error(f"cases {path.name} is not UTF-8: {error.reason}") from error
    except FileNotFoundError as error:
        raise usage_error(f"there is no case file '{path}'") from error
    except OSError as error:
        raise DetokbenchError(f"cannot read the cases {path.name}: {error.strerror}") from error
