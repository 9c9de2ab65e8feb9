"""What the reader sees of a host that keeps up, and of one that does not.

The engine emits a step of B ids every T_step, whatever the host does; the host takes ``host_s``
for it. Both are taken as steady, so that a queue either stays empty or grows evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from detokbench.model.curves import SecondsAt


@dataclass(frozen=True, slots=True)
class QueueState:
    """One host at one batch."""

    added_delay_s: float
    """From the engine's emission to the text of the step's last sequence, with the queue empty."""
    utilisation: float
    """The part of T_step that the host works; above 1 it is late."""
    backlog_ids_per_s: float
    """Ids by which the queue grows each second; 0 for a host that keeps up."""
    lag_s_per_s: float
    """Seconds by which the text falls behind the engine each second; 0 for a host that keeps up."""
    itl_s: float
    """The gap between tokens at the reader."""


def queue_state(batch: int, host_s: float, t_step_s: float, ids_per_step: int = 1) -> QueueState:
    """A host that takes ``host_s`` for a step that comes every ``t_step_s``, and merges nothing.

    ``itl_s`` is the mean gap: with several ids a step they arrive together.
    """
    ids = batch * ids_per_step
    pace_s = max(host_s, t_step_s)
    return QueueState(
        added_delay_s=host_s,
        utilisation=host_s / t_step_s,
        backlog_ids_per_s=ids / t_step_s - ids / pace_s,
        lag_s_per_s=1 - t_step_s / pace_s,
        itl_s=pace_s / ids_per_step,
    )


def merged_chunks_per_step(
    batch: int, decode_s: float, chunk_s: float, t_step_s: float
) -> float | None:
    """Chunks a sequence and step that a front end has time for, where unread ones merge.

    vLLM's front end (0.33.0, ``RequestOutputCollector``) joins what a stream has not taken yet:
    overload shows as fewer chunks a token first. ``decode_s`` is what the whole step takes however
    few chunks there are, ``chunk_s`` one chunk. At most 1; the gap between chunks is ``t_step_s``
    over it. None where decoding alone takes longer than the step: then it lags.
    """
    left_s = t_step_s - decode_s
    if left_s <= 0:
        return None
    return min(1.0, left_s / (batch * chunk_s)) if chunk_s > 0 else 1.0


def front_ends_needed(host_s: SecondsAt, batch: int, t_step_s: float) -> int | None:
    """The smallest number of front-end processes that keeps up, each with its part of the batch.

    The largest part counts; every process pays the fixed cost of a step. None where even one
    sequence a process takes longer than the step. Each process is given a core of its own.
    """
    if host_s(1) > t_step_s:
        return None
    return next(n for n in range(1, batch + 1) if host_s(-(-batch // n)) <= t_step_s or n == batch)


def shared_by_engines(host_s: SecondsAt, engines: int) -> Callable[[float], float]:
    """Host seconds a T_step of one front end for ``engines`` of them, over the batch of each.

    Each engine sends its own message a step, so the fixed cost comes ``engines`` times as well.
    """

    def shared_s(batch: float) -> float:
        return engines * host_s(batch)

    return shared_s
