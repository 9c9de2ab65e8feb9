"""Front ends by name, found through the entry-point group ``detokbench.frontends``."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import nearest, parse_choice
from detokbench.live.engines.front_end import FrontEnd

GROUP = "detokbench.frontends"
_ORDER = ("vllm", "vllm-rs", "sglang", "sglang-rs")


@cache
def _entry_points() -> dict[str, EntryPoint]:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not found:
        raise DetokbenchError(
            "no front end is registered; install detokbench with pip, do not copy it"
        )
    ours = [name for name in _ORDER if name in found]
    return {name: found[name] for name in [*ours, *sorted(set(found) - set(ours))]}


def front_end_names() -> list[str]:
    """Names of all front ends installed here, in the order of tables."""
    return list(_entry_points())


def load_front_end(name: str) -> FrontEnd:
    """A front end by name. Raises DetokbenchError: exit code 2 if unknown, 5 if not importable."""
    known = front_end_names()
    if name not in known:
        raise usage_error(f"unknown engine '{name}'{nearest(name, known)}")
    try:
        front_end: FrontEnd = _entry_points()[name].load()()
    except Exception as error:
        why = " ".join(str(error).split())
        raise DetokbenchError(
            f"engine '{name}' cannot be imported: {type(error).__name__}: {why}"
        ) from error
    return front_end


def check_front_end_names(text: str) -> list[str]:
    """``"vllm,sglang"`` → names without repeats. Raises DetokbenchError (exit 2) if unknown."""
    known = front_end_names()
    return list(dict.fromkeys(parse_choice(name, known, "--engine") for name in text.split(",")))
