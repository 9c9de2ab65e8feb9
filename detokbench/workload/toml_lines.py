"""Where in a TOML file a key stands, and msgspec's complaints in a TOML writer's words.

tomllib gives no positions for what it has read. A statement of TOML ends with a line, and none
can be cut short without becoming invalid, so the lines of a file that is known to be valid are
given to tomllib one statement at a time: strings and arrays over several lines, quoted keys and
inline tables need no grammar of ours.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

KeyPath = tuple[str | int, ...]
"""Keys and positions in arrays, counted from 0, from the top of a file to a value."""

_STEP = re.compile(r"\.?(\w+)|\[(\d+)\]")
_WORDS = {"object": "table", "array": "list", " | null": ""}


class KeyLines:
    """The line on which each key of a file stands, counted from 1."""

    def __init__(self, text: str) -> None:
        self._line_of = dict(_key_lines(text))

    def __getitem__(self, path: KeyPath) -> int:
        """The line of a key; of what it lies in, where it has none of its own; at last line 1."""
        while path and path not in self._line_of:
            path = path[:-1]
        return self._line_of.get(path, 1)


def _key_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    sizes: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement in _statements(text):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = _opened_table(parsed, sizes)
            yield table, number
        else:
            yield from ((table + path, number) for path in _paths(parsed))


def error_line(text: str, error: tomllib.TOMLDecodeError) -> int:
    """The line of a syntax error; that of the open string or list for one found at the end."""
    said = re.search(r"at line (\d+)", str(error))
    if said:
        return int(said[1])
    ended = sum(statement.count("\n") for _, statement in _statements(text))
    return min(ended, text.count("\n")) + 1


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the line that it begins on. Blank lines and comments are some too."""
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += line + "\n"
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # a string or an array that goes on
        yield first, statement
        statement, first = "", number + 1


def _opened_table(header: dict[str, Any], sizes: dict[KeyPath, int]) -> KeyPath:
    """The path of a ``[table]`` or ``[[table]]``; ``sizes`` counts the tables of each array."""
    path: KeyPath = ()
    value: Any = header
    while value:
        if isinstance(value, list):
            sizes[path] = sizes.get(path, 0) + 1
            break
        ((key, value),) = value.items()
        if path in sizes:
            path += (sizes[path] - 1,)
        path += (key,)
    return (*path, sizes[path] - 1) if path in sizes else path


def _paths(parsed: dict[str, Any]) -> Iterator[KeyPath]:
    for key, value in parsed.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _paths(value))


def explain(message: str) -> tuple[KeyPath, str]:
    """A ValidationError's message → the path of the key, and what is wrong with it.

    ``Expected `str`, got `int` - at `$.case[2].title` `` → ``(("case", 2, "title"), "expected str,
    got int")``. An unknown or missing key is the last part of its path.
    """
    what, _, where = message.partition(" - at ")
    path: KeyPath = tuple(
        int(step[2]) if step[2] else step[1] for step in _STEP.finditer(where.strip("`$"))
    )
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", what)
    if unknown:
        return (*path, unknown[1]), "there is no such key"
    missing = re.fullmatch(r"Object missing required field `(.*)`", what)
    if missing:
        return (*path, missing[1]), "the key is missing"
    for word, better in _WORDS.items():
        what = what.replace(word, better)
    what = what.replace("`", "")
    return path, what[0].lower() + what[1:]


def key_name(path: KeyPath) -> str:
    """``("case", 2, "title")`` → ``case[2].title``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".")
