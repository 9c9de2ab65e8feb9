"""What follows from the limits of front ends for a GPU: B*, and how many a batch needs."""

from __future__ import annotations

from detokbench.live.engines.frontend_plan import NEEDED_AT, Asked
from detokbench.model.crossover import crossover
from detokbench.model.curves import Measured
from detokbench.model.front_ends import front_ends_needed
from detokbench.records.frontend import (
    FrontendAnswer,
    FrontendDetails,
    FrontendLimit,
    GpuCurve,
)

_DRAWN_AT = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def gpu_curves(asked: Asked) -> list[GpuCurve]:
    """The roofline at each context, to be drawn from the record alone."""
    curves = []
    for context in asked.contexts:
        curve = asked.deployment.paper_curve(context, "roofline")
        curves.append(
            GpuCurve(
                context=context,
                batches=list(_DRAWN_AT),
                seconds=[curve(batch) for batch in _DRAWN_AT],
                largest_batch=curve.largest_batch,
            )
        )
    return curves


def host_curve(limits: list[FrontendLimit]) -> Measured | None:
    """The shortest T_step that held at a number of streams; None for fewer than two numbers."""
    points = {limit.streams: limit.held_s for limit in limits if limit.held_s is not None}
    return Measured.from_points(points) if len(points) > 1 else None


def _is_bound(limits: list[FrontendLimit], batch: float | None) -> bool:
    """Whether the limit that B* lies below, or the last one, may be better than was seen."""
    if batch is None:
        return False
    rising = sorted(limits, key=lambda limit: limit.streams)
    return next((limit for limit in rising if limit.streams >= batch), rising[-1]).is_bound


def answers_of(details: FrontendDetails, asked: Asked) -> list[FrontendAnswer]:
    """For each front end and context. A number of front ends only from limits of one of them."""
    answers = []
    for engine in details.engines:
        limits = [limit for limit in details.limits if limit.engine == engine.name]
        host = host_curve(limits)
        if host is None:
            continue
        for context in asked.contexts:
            curve = asked.deployment.paper_curve(context, "roofline")
            found = crossover(host, curve, largest_batch=curve.largest_batch)
            needed = {
                batch: front_ends_needed(batch, host, curve)
                for batch in NEEDED_AT
                if asked.front_ends == 1 and curve.fits(batch)
            }
            answers.append(
                FrontendAnswer(
                    engine=engine.name,
                    context=context,
                    answer=found.text,
                    batch=found.batch,
                    is_bound=_is_bound(limits, found.batch),
                    needed=needed,
                )
            )
    return answers
