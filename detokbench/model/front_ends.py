"""How many front-end processes a batch needs; pure arithmetic."""

from __future__ import annotations

from detokbench.model.curves import SecondsAt

MOST = 64


def front_ends_needed(
    batch: int, host_s: SecondsAt, t_step_s: SecondsAt, most: int = MOST
) -> int | None:
    """The fewest that keep up when each has its part of the batch; None where ``most`` do not.

    ``host_s`` is the shortest step in seconds that one front end holds at a number of streams. It
    counts the processes as if each had a core to itself.
    """
    step_s = t_step_s(batch)
    for count in range(1, min(most, batch) + 1):
        if host_s(batch / count) <= step_s:
            return count
    return None
