"""What the data sheet alone answers: ridges, the batches that fit, published steps beside it."""

from __future__ import annotations

import math

from detokbench.records.time_step import ContextAnswer, PublishedPoint
from detokbench.tstep.gpus import Gpu
from detokbench.tstep.plan import Asked, Plan
from detokbench.tstep.published import published_steps
from detokbench.tstep.roofline import fits_in_memory, largest_batch, ridge_batch
from detokbench.tstep.shapes import DEFAULT_MODEL, find_shape

# What the published steps may be held against. Most of them say no more than "H100"; the PCIe
# card is too slow for the fastest ones, so it cannot have been that.
_H100_CLASS = ("h100-sxm", "h100-nvl")
_TP_TO_TRY = (2, 4, 8, 16, 32)


def context_answers(plan: Plan) -> list[ContextAnswer]:
    """Ridge and largest batch for each context; none without a GPU."""
    asked, gpu = plan.asked, plan.target.gpu
    if gpu is None:
        return []
    return [_answer(asked, gpu, context) for context in asked.contexts]


def _answer(asked: Asked, gpu: Gpu, context: int) -> ContextAnswer:
    ridge, largest = (
        function(asked.shape, gpu, context, weights=asked.weights, kv=asked.kv, tp=asked.tp)
        for function in (ridge_batch, largest_batch)
    )
    return ContextAnswer(
        context=context,
        ridge_batch=ridge if math.isfinite(ridge) else None,
        largest_batch=int(largest) if math.isfinite(largest) else None,
    )


def smallest_tp(plan: Plan) -> int | None:
    """The fewest GPUs that hold the weights; None where those asked for do, or none will."""
    asked, gpu = plan.asked, plan.target.gpu
    if gpu is None or _holds_weights(asked, gpu, asked.tp):
        return None
    ways = (tp for tp in _TP_TO_TRY if tp > asked.tp and asked.shape.heads % tp == 0)
    return next((tp for tp in ways if _holds_weights(asked, gpu, tp)), None)


def _holds_weights(asked: Asked, gpu: Gpu, tp: int) -> bool:
    return fits_in_memory(asked.shape, gpu, 1, 0, weights=asked.weights, kv=asked.kv, tp=tp)


def published_beside(plan: Plan) -> list[PublishedPoint]:
    """Published steps of this model, served as theirs was, where the GPU is an H100."""
    asked, gpu = plan.asked, plan.target.gpu
    is_theirs = asked.is_timeable and asked.shape == find_shape(DEFAULT_MODEL)
    if gpu is None or gpu.name not in _H100_CLASS or not is_theirs:
        return []
    return [
        PublishedPoint(
            t_step_s=step.t_step_s,
            batch=step.batch,
            context=step.context,
            engine=step.engine,
            scope=step.scope,
            source=step.source,
            hardware=step.hardware,
            roofline_s=plan.step_time(step.batch, step.context or 0).total_s,
        )
        for step in published_steps()
    ]
