"""Paths by name, found through the entry-point group ``detokbench.paths``.

A new path is one file and one line in a package's metadata, ours or anyone's. Names are listed
without importing the paths themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_args

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import nearest
from detokbench.paths.installed_engine import ENGINE_OF_PATH, can_run_here
from detokbench.paths.protocol import DetokPath, PathClass
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import Vocabulary

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
    *ENGINE_OF_PATH,
)


@dataclass(frozen=True)
class RegisteredPath:
    """A path as its entry point names it; what its class does not say has a default."""

    name: str
    build: Any

    def __call__(self, vocabulary: Vocabulary, **options: Any) -> DetokPath:
        path: DetokPath = self.build(vocabulary, **options)
        return path

    @property
    def whose(self) -> str:
        """Whose code does it this way; by default the module's."""
        return str(getattr(self.build, "whose", self.build.__module__))

    @property
    def summary(self) -> str:
        """The first line of the class's docstring, without mark-up."""
        lines = (self.build.__doc__ or "").strip().splitlines()
        return lines[0].replace("``", "") if lines else ""

    @property
    def expected_to_fail(self) -> str:
        return str(getattr(self.build, "expected_to_fail", ""))

    @property
    def thread_counts(self) -> tuple[int | None, ...]:
        return tuple(getattr(self.build, "thread_counts", (None,)))

    @property
    def stops(self) -> StopStyle | None:
        return getattr(self.build, "stops", None)

    @property
    def is_engine(self) -> bool:
        """Whether the code is that of an engine, so that its tokenizer calls cannot be watched."""
        return bool(getattr(self.build, "is_engine", False))

    def why_not(self, vocabulary: Vocabulary) -> str | None:
        """Why the path does not apply to ``vocabulary``; by default it always does.

        Raises DetokbenchError where the path's own answer fails or is no text.
        """
        ask = getattr(self.build, "why_not", None)
        try:
            answer = None if ask is None else ask(vocabulary)
        except Exception as error:
            why = " ".join(str(error).split())
            raise DetokbenchError(
                f"path '{self.name}' cannot say whether it applies to {vocabulary.name}: "
                f"{type(error).__name__}: {why}"
            ) from error
        if not isinstance(answer, str | None):
            raise DetokbenchError(
                f"path '{self.name}': why_not gave {answer!r}, neither a reason nor None"
            )
        return answer


@cache
def _entry_points() -> dict[str, EntryPoint]:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not found:
        raise DetokbenchError("no path is registered; install detokbench with pip, do not copy it")
    ours = [name for name in _ORDER if name in found]
    return {name: found[name] for name in [*ours, *sorted(set(found) - set(ours))]}


def path_names() -> list[str]:
    """Names of the paths that can run here, in the order of tables.

    Paths of an engine that is not installed beside us are left out: ``known_path_names`` has them.
    """
    return [name for name in _entry_points() if can_run_here(name)]


def known_path_names() -> list[str]:
    """Names of all registered paths, whether what they need is installed or not."""
    return list(_entry_points())


def check_path_names(text: str, option: str = "--paths") -> list[str]:
    """The names in a list with commas, without repeats; an unknown one is a usage error."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise usage_error(f"{option}: '{text}' has an empty part; write for example fast,slow")
    known = known_path_names()
    for name in names:
        if name not in known:
            raise usage_error(f"unknown path '{name}'{nearest(name, known)}")
    return list(dict.fromkeys(names))


def load_path_class(name: str) -> PathClass:
    """Import a path. Raises DetokbenchError: exit code 2 if unknown, 5 if it cannot be imported."""
    check_path_names(name)
    try:
        loaded = _entry_points()[name].load()
    except Exception as error:
        why = " ".join(str(error).split())
        raise DetokbenchError(
            f"path '{name}' cannot be imported: {type(error).__name__}: {why}"
        ) from error
    path = RegisteredPath(name, loaded)
    if path.stops not in (None, *get_args(StopStyle)):
        raise DetokbenchError(
            f"path '{name}' has stops {path.stops!r}; known are: {', '.join(get_args(StopStyle))}"
        )
    return path
