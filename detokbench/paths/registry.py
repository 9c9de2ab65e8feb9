"""Paths by name, found through the entry-point group ``detokbench.paths``.

A new path is one file and one line in a package's metadata, ours or anyone's. Names are listed
without importing the paths themselves.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import nearest
from detokbench.paths.protocol import PathClass

GROUP = "detokbench.paths"
# The order of tables: from what everybody tries first to the cure.
_ORDER = (
    "naive",
    "text-streamer",
    "slow-uncached",
    "slow",
    "fast",
    "batch-decode",
    "row-decode",
    "rust-batch",
    "byte-table",
)


@cache
def _entry_points() -> dict[str, EntryPoint]:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not found:
        raise DetokbenchError("no path is registered; install detokbench with pip, do not copy it")
    ours = [name for name in _ORDER if name in found]
    return {name: found[name] for name in [*ours, *sorted(set(found) - set(ours))]}


def path_names() -> list[str]:
    """Names of all paths installed here, in the order of tables."""
    return list(_entry_points())


def check_path_names(names: list[str]) -> list[str]:
    """The same names without repeats; an unknown one is a usage error."""
    known = path_names()
    for name in names:
        if name not in known:
            raise usage_error(f"unknown path '{name}'{nearest(name, known)}")
    return list(dict.fromkeys(names))


def load_path_class(name: str) -> PathClass:
    """Import a path. Raises DetokbenchError: exit code 2 if unknown, 5 if it cannot be imported."""
    check_path_names([name])
    try:
        return cast(PathClass, _entry_points()[name].load())
    except Exception as error:
        raise DetokbenchError(f"path '{name}' cannot be imported: {error}") from error
