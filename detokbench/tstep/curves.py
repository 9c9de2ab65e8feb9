"""T_step as a function of the batch, by source: what a host cost is set against.

Sources are never mixed: each curve is of one source and one context, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from detokbench.errors import usage_error
from detokbench.model.curves import Measured, SecondsAt
from detokbench.records.schema import Source
from detokbench.tstep.gpus import Gpu, find_gpu
from detokbench.tstep.roofline import KvFormat, WeightFormat, largest_batch, step_time_s
from detokbench.tstep.shapes import DEFAULT_MODEL, ModelShape, find_shape


@dataclass(frozen=True)
class TStepCurve:
    """T_step in seconds at a batch, at one context and from one source.

    ``context`` is None for a constant that was given. ``largest_batch`` is what memory holds,
    None where that is not known.
    """

    source: Source
    context: int | None
    t_step_s: SecondsAt
    largest_batch: int | None
    gpu: str | None = None
    model: str | None = None

    def __call__(self, batch: float) -> float:
        return self.t_step_s(batch)

    def fits(self, batch: int) -> bool:
        """Whether the batch fits into memory, as far as that is known."""
        return self.largest_batch is None or batch <= self.largest_batch


class Deployment(msgspec.Struct, kw_only=True, frozen=True):
    """What decides T_step on paper, as a record keeps it. ``derate`` 1 is the bare roofline."""

    gpu: Gpu
    model: ModelShape
    weights: WeightFormat = "bf16"
    kv: KvFormat = "bf16"
    tp: int = 1
    derate: float = 1.0

    def paper_curve(self, context: int, source: Source) -> TStepCurve:
        """The curve of 'roofline', 'memory-only' or 'derated'."""
        derate = self.derate if source == "derated" else 1.0

        def t_step_s(batch: float) -> float:
            step = step_time_s(
                self.model,
                self.gpu,
                batch,
                context,
                weights=self.weights,
                kv=self.kv,
                tp=self.tp,
                derate=derate,
            )
            return step.memory_s if source == "memory-only" else step.total_s

        most = self.largest_batch(context)
        return TStepCurve(source, context, t_step_s, most, self.gpu.title, self.model.name)

    def largest_batch(self, context: int) -> int | None:
        """The largest batch whose KV fits beside the weights; None where there is no bound."""
        most = largest_batch(
            self.model, self.gpu, context, weights=self.weights, kv=self.kv, tp=self.tp
        )
        return int(most) if math.isfinite(most) else None


def roofline_curve(gpu: str, context: int, model: str = DEFAULT_MODEL) -> TStepCurve:
    """The roofline of a model on one GPU in bf16, both by name.

    Raises DetokbenchError (exit code 2) for unknown names, and where not one sequence fits.
    """
    deployment = Deployment(gpu=find_gpu(gpu), model=find_shape(model))
    check_fits(deployment, context)
    return deployment.paper_curve(context, "roofline")


def check_fits(deployment: Deployment, context: int) -> None:
    """Refuse (exit code 2) a context of which memory does not hold one sequence."""
    if deployment.largest_batch(context) == 0:
        raise usage_error(
            f"{deployment.model.name} and one sequence of {context:,} tokens do not fit into the "
            f"{deployment.gpu.memory_gb:g} GB of {deployment.gpu.title}"
        )


def given_curve(t_step_s: float) -> TStepCurve:
    """A constant that the user gave, in seconds."""
    return TStepCurve("given", None, lambda _batch: t_step_s, None)


def measured_curves(points: Mapping[int, Mapping[int, float]]) -> list[TStepCurve]:
    """Curves through measured points, context → batch → seconds; one point gives no curve."""
    return [
        TStepCurve("measured", context, Measured.from_points(at_batch), None)
        for context, at_batch in sorted(points.items())
        if len(at_batch) > 1
    ]
