"""How far the text kept up with the engine: what was delivered, in how many chunks, how late."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import NamedTuple

from detokbench.live.judge import slope
from detokbench.live.run_view import RunView
from detokbench.live.topology import ENGINE


class Delivery(NamedTuple):
    """Fields as in a record's RunFacts; all within the run's window."""

    chunks_per_token: float | None
    typical_chunks_per_token: float | None
    undelivered_ids: float
    growth_ids_per_s: float
    lag_s_per_s: float


def delivery_of(view: RunView) -> Delivery:
    """The delivery of one run."""
    front_ends = view.processes.front_ends
    emitted = view.gained((ENGINE,), lambda s: s.ids)
    delivered = view.gained(front_ends, lambda s: s.delivered)
    chunks = view.gained(front_ends, lambda s: s.chunks)
    growth = slope([(at_ns * 1e-9, view.undelivered(at_ns)) for at_ns in view.grid()])
    rate = emitted / view.window_s if view.window_s > 0 else 0.0
    return Delivery(
        chunks_per_token=chunks / delivered if delivered > 0 else None,
        typical_chunks_per_token=_typical_chunks(view),
        undelivered_ids=view.undelivered(view.end_ns),
        growth_ids_per_s=growth,
        lag_s_per_s=growth / rate if rate > 0 else 0.0,
    )


def _typical_chunks(view: RunView) -> float | None:
    """Chunks a token in the median piece of the window."""
    names = view.processes.front_ends
    chunks = [view.sum_at(names, at_ns, lambda s: s.chunks) for at_ns in view.grid()]
    ids = [view.sum_at(names, at_ns, lambda s: s.delivered) for at_ns in view.grid()]
    pieces = [
        (after - before) / (later - earlier)
        for (before, after), (earlier, later) in zip(pairwise(chunks), pairwise(ids), strict=True)
        if later - earlier >= 1
    ]
    return median(pieces) if pieces else None
