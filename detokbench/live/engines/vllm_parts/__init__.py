"""vLLM's front end up to a chosen depth, in a process of the engine's own interpreter.

The pieces are the installed vLLM's, found by import and unmodified; what lies between them is
ours. A rung runs all that the rungs before it run and one piece more, so that the difference
between two neighbours is what the piece costs where it stands, caches and wake-ups included.

This package is copied into the folder of a run and started there: it imports the standard library,
what vLLM brings, and itself, but never detokbench.
"""

from __future__ import annotations

RUNGS = (
    "wire",
    "output",
    "decode",
    "stop",
    "statistics",
    "hand-over",
    "json",
    "framework",
    "socket",
)
"""In their order; ``stop`` is a branch: it stands on ``decode``, and nothing stands on it."""

BELOW = {
    "output": "wire",
    "decode": "output",
    "stop": "decode",
    "statistics": "decode",
    "hand-over": "statistics",
    "json": "hand-over",
    "framework": "json",
    "socket": "framework",
}
"""The rung that a rung stands on; ``wire`` stands on the idle process."""


def stands_on(rung: str, lower: str) -> bool:
    """Whether a rung runs what ``lower`` adds; every rung stands on itself."""
    while rung != lower:
        if rung not in BELOW:
            return False
        rung = BELOW[rung]
    return True
