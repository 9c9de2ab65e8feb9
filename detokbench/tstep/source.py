"""T_step as a function of the batch: given as one number, or from a GPU's roofline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from detokbench.errors import usage_error
from detokbench.model.curves import SecondsAt
from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.roofline import largest_batch, step_time_s
from detokbench.tstep.shapes import DEFAULT_MODEL, find_shape


@dataclass(frozen=True)
class TStep:
    """Seconds a step at a batch, and where they come from."""

    seconds: SecondsAt
    source: Literal["given", "roofline"]
    gpu: str | None = None
    model: str | None = None
    context: int | None = None
    largest_batch: float = math.inf

    def fits(self, batch: int) -> bool:
        """Whether memory holds so many sequences."""
        return batch <= self.largest_batch


def given_t_step(seconds: float) -> TStep:
    """The same time for every batch, as the chapter has it."""
    return TStep(lambda _batch: seconds, "given")


def roofline_t_step(gpu_name: str, context: int, model: str = DEFAULT_MODEL) -> TStep:
    """The roofline of a model on a GPU at a mean KV length of ``context`` tokens.

    Raises DetokbenchError (exit code 2) for unknown names, and where not one sequence fits.
    """
    gpu, shape = find_gpu(gpu_name), find_shape(model)
    most = largest_batch(shape, gpu, context)
    if most < 1:
        raise usage_error(
            f"{shape.name} and one sequence of {context:,} tokens do not fit into the "
            f"{gpu.memory_gb:g} GB of {gpu.title}"
        )
    return TStep(
        lambda batch: step_time_s(shape, gpu, batch, context).total_s,
        "roofline",
        gpu.title,
        shape.name,
        context,
        most,
    )
