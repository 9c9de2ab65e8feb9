"""One row of the T_step table: a batch, a context, a source, and what is known of the step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from detokbench.tstep.gpus import Gpu
from detokbench.tstep.roofline import (
    KvFormat,
    WeightFormat,
    fits_in_memory,
    memory_needed_bytes,
    step_time_s,
)
from detokbench.tstep.shapes import ModelShape

PaperSource = Literal["roofline", "memory-only", "derated"]
# 'cpu' is a measurement too, of this machine's processor: it shows that the code runs, and it
# must never be read as the step of a GPU.
Source = Literal["measured", "cpu", "roofline", "memory-only", "derated"]


@dataclass(frozen=True)
class TimingRow:
    """T_step of one point, in seconds; None where the point could not be measured.

    ``samples`` are seconds a step, each a mean over many; ``spread`` is their range over their
    median. ``bytes`` must be read in a step (on each GPU); ``share_of_copy`` and
    ``share_of_sheet`` are bytes a second over the device's measured copy bandwidth and over the
    data sheet's. ``graph_error`` is the largest difference of the captured step's logits from
    the eager ones, over the largest logit. ``sm_clock_mhz`` was read under load.
    """

    batch: int
    context: int
    source: Source
    t_step_s: float | None
    bytes: float
    samples: tuple[float, ...] = ()
    spread: float | None = None
    share_of_copy: float | None = None
    share_of_sheet: float | None = None
    graph_error: float | None = None
    sm_clock_mhz: float | None = None
    note: str = ""


def paper_rows(
    shape: ModelShape,
    gpu: Gpu,
    batches: Sequence[int],
    contexts: Sequence[int],
    *,
    source: PaperSource = "roofline",
    weights: WeightFormat = "bf16",
    kv: KvFormat = "bf16",
    tp: int = 1,
    derate: float = 1.0,
) -> Iterator[TimingRow]:
    """The table without a device. ``derate`` counts for the source 'derated' only.

    Points that do not fit into the GPU's memory are given all the same, and their note says so.
    """
    for context in contexts:
        for batch in batches:
            step = step_time_s(
                shape,
                gpu,
                batch,
                context,
                weights=weights,
                kv=kv,
                tp=tp,
                derate=derate if source == "derated" else 1.0,
            )
            t_step_s = step.memory_s if source == "memory-only" else step.total_s
            note = "bound by compute" if t_step_s > step.memory_s else ""
            if not fits_in_memory(shape, gpu, batch, context, weights=weights, kv=kv, tp=tp):
                needed = memory_needed_bytes(shape, batch, context, weights=weights, kv=kv, tp=tp)
                note = f"does not fit: {needed / 1e9:.0f} GB of {gpu.memory_gb:g} GB"
            yield TimingRow(
                batch=batch,
                context=context,
                source=source,
                t_step_s=t_step_s,
                bytes=step.bytes_read,
                share_of_sheet=step.bytes_read / t_step_s / gpu.bandwidth_bytes_s,
                note=note,
            )
