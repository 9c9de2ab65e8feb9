"""Whether a chunk must wait because its end may be the beginning of a stop string.

SGLang suppresses the whole chunk then (0.5.23, ``Req.check_match_stop_str_prefix``), and asks
again at the next step.
"""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.stops.tail_window import Decode, TailWindow


def ends_with_prefix(tail: str, stop: str) -> bool:
    """Whether ``tail`` ends with a beginning of ``stop``, of any length from one character up.

    Each length is tried with two slices in a plain loop, as the engine does it: the characters
    copied grow with the square of the stop's length. That is on purpose, since the cost is what is
    measured.
    """
    for length in range(1, min(len(tail), len(stop)) + 1):
        if tail[-length:] == stop[:length]:
            return True
    return False


def may_become_stop(tail: str, strings: Sequence[str]) -> bool:
    """Whether one of the stop strings lies in the tail or may be about to; empty ones never do."""
    if not tail:
        return False
    return any(stop in tail or ends_with_prefix(tail, stop) for stop in strings if stop)


def suppresses_chunk(
    output_ids: Sequence[int], strings: Sequence[str], window: TailWindow, decode: Decode
) -> bool:
    """The prefix check of one due chunk: one decode, where there are stop strings.

    Regexes are not asked. The window is not widened by the ids accepted: it looks at its end only.
    """
    return bool(strings) and may_become_stop(decode(window.ids(output_ids)), strings)
