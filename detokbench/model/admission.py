"""How an admitted prompt delays the streams that share its event loop.

Admission and the first token are work on the loop: while it lasts, nobody gets a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log


def blocked_s(admit_s: float, first_token_s: float) -> float:
    """Seconds that the loop is taken by one admitted request."""
    return admit_s + first_token_s


def late_gap_s(t_step_s: float, admit_s: float, first_token_s: float) -> float:
    """The longest gap of the others between two tokens: a step, and what is in its way."""
    return t_step_s + blocked_s(admit_s, first_token_s)


def length_that_blocks(points: Sequence[tuple[int, float]], limit_s: float) -> float | None:
    """From how many ids on a prompt blocks longer than ``limit_s``; 0 where the shortest does.

    ``points`` are ``(ids, seconds)`` with rising ids. Between two of them cost is taken as a power
    of the length. None where not even the longest does.
    """
    before: tuple[int, float] | None = None
    for ids, seconds in points:
        if seconds > limit_s:
            if before is None:
                return 0.0
            share = log(limit_s / before[1]) / log(seconds / before[1])
            return exp(log(before[0]) + share * log(ids / before[0]))
        before = ids, seconds
    return None
