"""When a host counts as not keeping up; pure arithmetic.

vllm: unread chunks merge, so that in the median 50 ms there are fewer than 95 % of the chunks that
the stream interval asks for, while a process of the host uses 80 % of a core or more (with less, it
is something else that keeps it from running); or the text falls behind by more than 20 ms a second.
sglang: the text falls behind by more than 20 ms a second, or the mean ITL is above 1.05 T_step, or
the scheduler is late, with fewer than 98 % of the steps that were due.
"""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.records.pipeline import Topology

CHUNKS_AT_LEAST = 0.95
LAG_AT_MOST = 0.02
ITL_AT_MOST = 1.05
STEPS_AT_LEAST = 0.98
BUSY_FROM = 0.8

RULES: dict[Topology, str] = {
    "vllm": "fewer than 95 % of the chunks due in the median 50 ms (unread ones merge) with a host "
    "process at 80 % of a core or more, or the text falls behind by more than 20 ms a second",
    "sglang": "the text falls behind by more than 20 ms a second, or the mean ITL is above 1.05 "
    "T_step, or fewer than 98 % of the steps due",
}


def why_broken(
    topology: Topology,
    *,
    chunks_per_token: float | None,
    interval: int,
    lag_s_per_s: float,
    itl_s: float | None,
    t_step_s: float,
    steps_share: float,
    busiest_share: float,
) -> str:
    """Why a run at one batch counts as broken, in a few words; empty where the host keeps up.

    ``chunks_per_token`` is that of the median 50 ms, ``steps_share`` steps done over steps due,
    ``busiest_share`` the part of a core that the busiest process of the host uses.
    """
    if lag_s_per_s > LAG_AT_MOST:
        return f"falls behind by {1e3 * lag_s_per_s:.0f} ms a second"
    if topology == "vllm":
        is_merging = chunks_per_token is not None and chunks_per_token * interval < CHUNKS_AT_LEAST
        if is_merging and busiest_share >= BUSY_FROM:
            return f"chunks merge: {chunks_per_token:.2f} a token"
        return ""
    if steps_share < STEPS_AT_LEAST:
        return f"the scheduler is late: {100 * steps_share:.0f} % of the steps due"
    if itl_s is not None and itl_s > ITL_AT_MOST * t_step_s:
        return f"ITL is {itl_s / t_step_s:.2f} T_step"
    return ""


def slope(points: Sequence[tuple[float, float]]) -> float:
    """What y gains a unit of x: least squares; 0 for fewer than two points."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if spread == 0:
        return 0.0
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
