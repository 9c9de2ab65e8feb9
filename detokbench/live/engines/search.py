"""The shortest T_step at which a front end holds, for a number of streams; pure bookkeeping.

What looks broken is tried once more and counts only if it is broken again: whatever else the
machine does breaks a run now and then, and never mends one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple


class Bracket(NamedTuple):
    """In seconds: the shortest T_step that held and the longest below it that did not.

    ``held_s`` is None where none held down to the longest allowed, ``broke_s`` where all held.
    """

    held_s: float | None
    broke_s: float | None


def find_limit(
    holds: Callable[[float], bool],
    start_s: float,
    *,
    shortest_s: float,
    longest_s: float,
    width: float,
    held_s: float | None = None,
    broke_s: float | None = None,
) -> Bracket:
    """Double or halve T_step from ``start_s`` until it is enclosed, then bisect its logarithm.

    ``held_s`` and ``broke_s`` are what is known already. Ends where the two are closer than
    ``1 + width``, or at the shortest and the longest T_step.
    """
    t_step_s = min(max(start_s, shortest_s), longest_s)
    if held_s is not None and broke_s is None and t_step_s >= held_s:
        t_step_s = max(held_s / 2, shortest_s)
    if broke_s is not None and held_s is None and t_step_s <= broke_s:
        t_step_s = min(broke_s * 2, longest_s)
    while held_s is None or broke_s is None:
        if held_s is not None and held_s <= shortest_s:
            return Bracket(held_s, None)
        if broke_s is not None and broke_s >= longest_s:
            return Bracket(None, broke_s)
        if holds(t_step_s):
            held_s = t_step_s
            t_step_s = max(t_step_s / 2, shortest_s)
        else:
            broke_s = t_step_s
            t_step_s = min(t_step_s * 2, longest_s)
    while held_s / broke_s > 1 + width:
        middle = sqrt(held_s * broke_s)
        if holds(middle):
            held_s = middle
        else:
            broke_s = middle
    return Bracket(held_s, broke_s)


def twice(tries: Callable[[float], bool]) -> Callable[[float], bool]:
    """Try again what does not hold."""
    return lambda t_step_s: tries(t_step_s) or tries(t_step_s)
