"""Which path of ours reproduces which class of an installed engine."""

from __future__ import annotations

from dataclasses import dataclass

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import nearest
from detokbench.paths.installed_engine import ENGINE_OF_PATH, TRIED, can_run_here

TOLERANCE = (0.8, 1.25)
"""Between these the cost of ours is called that of the engine's own."""


@dataclass(frozen=True)
class Pair:
    """Ours and theirs. ``costs`` is False where theirs does more than turn ids into text."""

    ours: str
    theirs: str
    costs: bool = True

    @property
    def name(self) -> str:
        return f"{self.ours}:{self.theirs}"


PAIRS = (
    Pair("fast", "vllm"),
    Pair("slow", "vllm-slow"),
    Pair("fast", "vllm-output", costs=False),
    Pair("batch-decode", "sglang"),
    Pair("row-decode", "sglang-rows"),
)


def pairs_from(text: str | None) -> list[Pair]:
    """The pairs of a list such as ``fast:vllm,slow:vllm-slow``; without one, all that can run here.

    Raises a usage error for a pair that is none, and DetokbenchError (exit code 5) where no engine
    is installed, or not the one that a pair needs.
    """
    chosen = list(PAIRS) if text is None else [_pair(name.strip()) for name in text.split(",")]
    here = [pair for pair in chosen if can_run_here(pair.theirs)]
    if text is None and not here:
        raise DetokbenchError(
            f"no engine is installed in this environment: install detokbench beside one of "
            f"{', '.join(TRIED)}, and run it with that interpreter"
        )
    for pair in chosen:
        if text is not None and pair not in here:
            raise DetokbenchError(
                f"{pair.name}: {ENGINE_OF_PATH[pair.theirs]} is not installed in this environment"
            )
    return list(dict.fromkeys(here))


def _pair(name: str) -> Pair:
    names = [pair.name for pair in PAIRS]
    if name not in names:
        raise usage_error(f"--pairs: no pair '{name}'{nearest(name, names)}")
    return PAIRS[names.index(name)]
