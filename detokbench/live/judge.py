"""When a host counts as not keeping up; pure arithmetic.

Each symptom has those who can be at fault. The text falls behind by more than 20 ms a second, the
mean ITL is above 1.05 T_step, or, in vllm, unread chunks merge, so that the median 50 ms have
fewer than 95 % of the chunks that the stream interval asks for: the fault of the run where a CPU
of its host is busy with the run's processes for 80 % or more. Fewer than 98 % of the steps due:
the fault of the run where the engine's CPU is. With less, something else kept the processes from
running, and the run says nothing of the host: it is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from detokbench.records.pipeline import Topology

CHUNKS_AT_LEAST = 0.95
LAG_AT_MOST = 0.02
ITL_AT_MOST = 1.05
STEPS_AT_LEAST = 0.98
BUSY_FROM = 0.8

_ALL = (
    "the text falls behind by more than 20 ms a second, the mean ITL is above 1.05 T_step, or "
    "fewer than 98 % of the steps due were done"
)
_BUSY = (
    "; it is not judged where its own processes kept the CPU busy for less than 80 % (others took "
    "it)"
)
RULES: dict[Topology, str] = {
    "vllm": "the median 50 ms have fewer than 95 % of the chunks due (unread ones merge), "
    + _ALL
    + _BUSY,
    "sglang": _ALL + _BUSY,
}


class Verdict(NamedTuple):
    """Why a host does not keep up, or why that cannot be told; both empty where it keeps up."""

    broken: str
    not_judged: str


def judge(
    topology: Topology,
    *,
    chunks_per_token: float | None,
    interval: int,
    lag_s_per_s: float,
    itl_s: float | None,
    t_step_s: float,
    steps_share: float,
    busiest_cpu: float,
    engine_cpu: float,
) -> Verdict:
    """The verdict on a run at one batch, its reason in a few words.

    ``chunks_per_token`` is that of the median 50 ms, ``steps_share`` steps done over steps due.
    ``busiest_cpu`` is the part of a CPU of the host's processes that all processes of the run keep
    busy, ``engine_cpu`` that of the engine's.
    """
    found: list[tuple[str, float]] = []  # a symptom, and how busy the run kept whose fault it is
    if lag_s_per_s > LAG_AT_MOST:
        found.append((f"falls behind by {1e3 * lag_s_per_s:.0f} ms a second", busiest_cpu))
    chunks = None if topology == "sglang" else chunks_per_token
    if chunks is not None and chunks * interval < CHUNKS_AT_LEAST:
        found.append((f"chunks merge: {chunks:.2f} a token", busiest_cpu))
    if steps_share < STEPS_AT_LEAST:
        late = f"the scheduler is late: {100 * steps_share:.0f} % of the steps due"
        found.append((late, engine_cpu))
    elif itl_s is not None and itl_s > ITL_AT_MOST * t_step_s:  # else it follows from the steps
        found.append((f"ITL is {itl_s / t_step_s:.2f} T_step", busiest_cpu))
    own = [symptom for symptom, load in found if load >= BUSY_FROM]
    if own:
        return Verdict(own[0], "")
    return Verdict("", found[0][0] if found else "")


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
