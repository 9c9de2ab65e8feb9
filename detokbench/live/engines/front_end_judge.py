"""When a front end holds a rate; pure arithmetic."""

from __future__ import annotations

from detokbench.records.frontend import CHUNKS_AT_LEAST, STRETCH_AT_MOST

BOUND_FROM = 0.8
STEPS_AT_LEAST = 0.98

RULE = (
    f"holds: stretch at most {STRETCH_AT_MOST} and at least {CHUNKS_AT_LEAST} chunks a token; "
    "what looks broken is run again and counts only if it is broken again"
)


def why_not(stretch: float | None, chunks_per_token: float | None) -> str:
    """Why a run does not hold, in a few words; empty where it does."""
    if stretch is None or chunks_per_token is None:
        return "too little text came"
    if stretch > STRETCH_AT_MOST:
        return f"streams take {stretch:.2f} of their time"
    if chunks_per_token < CHUNKS_AT_LEAST:
        return f"chunks merge: {chunks_per_token:.2f} a token"
    return ""
