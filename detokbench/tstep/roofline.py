"""T_step on paper: the longer of the time to read memory and the time to compute.

Pure arithmetic. A roofline is a lower bound: launches, norms, sampling, and with tensor
parallelism the communication are all left out, and the data sheet's peaks are taken at their
word unless ``derate`` says which share of them is reached.

``batch`` may be a fraction: a crossover lies where it lies.
``context`` is the mean KV length of the sequences in tokens (prompt plus half the output).
``tp`` is the number of GPUs that share the model; bytes and FLOPs are those of one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from detokbench.errors import usage_error

if TYPE_CHECKING:
    from detokbench.tstep.gpus import Gpu
    from detokbench.tstep.shapes import ModelShape

WeightFormat = Literal["bf16", "fp8", "int4"]
KvFormat = Literal["bf16", "fp8"]

# Bare values: scales (a hundredth or so) and an output head left in bf16 come on top.
WEIGHT_BYTES: dict[str, float] = {"bf16": 2.0, "fp8": 1.0, "int4": 0.5}
KV_BYTES: dict[str, float] = {"bf16": 2.0, "fp8": 1.0}


@dataclass(frozen=True)
class StepTime:
    """One decode step of a batch on one GPU: seconds, bytes that must be read, FLOPs."""

    memory_s: float
    compute_s: float
    bytes_read: float
    flops: float

    @property
    def total_s(self) -> float:
        """T_step in seconds: reading and computing overlap, so the longer one counts."""
        return max(self.memory_s, self.compute_s)

    @property
    def bound(self) -> Literal["memory", "compute"]:
        """Which of the two it is."""
        return "memory" if self.memory_s >= self.compute_s else "compute"


def step_time_s(
    shape: ModelShape,
    gpu: Gpu,
    batch: float,
    context: float,
    *,
    weights: WeightFormat = "bf16",
    kv: KvFormat = "bf16",
    tp: int = 1,
    derate: float = 1.0,
) -> StepTime:
    """The roofline of one decode step. Raises DetokbenchError (exit code 2) on impossible values.

    Weights in int4 are multiplied at the bf16 rate, fp8 at the fp8 rate where the GPU has one.
    With ``tp`` > 1 the time of communication is left out, so it is even more of a lower bound.
    """
    _check(shape, batch, context, tp, derate)
    bytes_read = _weight_bytes(shape, weights) / tp
    bytes_read += batch * context * _kv_bytes_per_token(shape, kv, tp)
    linear = batch * 2 * shape.streamed_params / tp
    attention = batch * _attention_flops(shape, context) / tp
    compute_s = linear / _flop_s(gpu, weights) + attention / _flop_s(gpu, kv)
    return StepTime(
        memory_s=bytes_read / gpu.bandwidth_bytes_s / derate,
        compute_s=compute_s / derate,
        bytes_read=bytes_read,
        flops=linear + attention,
    )


def memory_only_s(
    shape: ModelShape,
    gpu: Gpu,
    batch: float,
    context: float,
    *,
    weights: WeightFormat = "bf16",
    kv: KvFormat = "bf16",
    tp: int = 1,
    derate: float = 1.0,
) -> float:
    """The memory term alone, in seconds: what T_step would be with endless compute."""
    return step_time_s(
        shape, gpu, batch, context, weights=weights, kv=kv, tp=tp, derate=derate
    ).memory_s


def ridge_batch(
    shape: ModelShape,
    gpu: Gpu,
    context: float = 0,
    *,
    weights: WeightFormat = "bf16",
    kv: KvFormat = "bf16",
    tp: int = 1,
) -> float:
    """The batch from which compute outlasts memory, not rounded.

    Infinite where a sequence's own KV takes longer to read than its token takes to compute.
    """
    one = step_time_s(shape, gpu, 1, context, weights=weights, kv=kv, tp=tp)
    weights_s = _weight_bytes(shape, weights) / tp / gpu.bandwidth_bytes_s
    gained_s = one.compute_s - (one.memory_s - weights_s)
    return weights_s / gained_s if gained_s > 0 else math.inf


def memory_needed_bytes(
    shape: ModelShape,
    batch: float,
    context: float,
    *,
    weights: WeightFormat = "bf16",
    kv: KvFormat = "bf16",
    tp: int = 1,
) -> float:
    """Bytes of weights and KV cache on each GPU. The gathered embedding is held in bf16."""
    _check(shape, batch, context, tp)
    gathered = (shape.total_params - shape.streamed_params) * WEIGHT_BYTES["bf16"]
    weight_bytes = (_weight_bytes(shape, weights) + gathered) / tp
    return weight_bytes + batch * context * _kv_bytes_per_token(shape, kv, tp)


def fits_in_memory(
    shape: ModelShape,
    gpu: Gpu,
    batch: float,
    context: float,
    *,
    weights: WeightFormat = "bf16",
    kv: KvFormat = "bf16",
    tp: int = 1,
) -> bool:
    """Whether the weights and the KV cache of ``batch`` x ``context`` tokens fit on each GPU."""
    needed = memory_needed_bytes(shape, batch, context, weights=weights, kv=kv, tp=tp)
    return needed <= gpu.memory_bytes


def largest_batch(
    shape: ModelShape,
    gpu: Gpu,
    context: float,
    *,
    weights: WeightFormat = "bf16",
    kv: KvFormat = "bf16",
    tp: int = 1,
) -> float:
    """The most sequences of ``context`` tokens that fit beside the weights on each GPU.

    0 where not even one does, infinite without a context, since then there is no KV to hold.
    """
    empty = memory_needed_bytes(shape, 1, 0, weights=weights, kv=kv, tp=tp)
    sequence_bytes = context * _kv_bytes_per_token(shape, kv, tp)
    room = gpu.memory_bytes - empty
    if room < 0:
        return 0
    return room // sequence_bytes if sequence_bytes else math.inf


def _weight_bytes(shape: ModelShape, weights: WeightFormat) -> float:
    return shape.streamed_params * WEIGHT_BYTES[weights]


def _kv_bytes_per_token(shape: ModelShape, kv: KvFormat, tp: int) -> float:
    # A KV head is not divided: beyond kv_heads GPUs, each holds a copy of one.
    return shape.kv_bytes_per_token(KV_BYTES[kv]) / min(tp, shape.kv_heads)


def _attention_flops(shape: ModelShape, context: float) -> float:
    """QK^T and AV of one sequence: two products of 2 FLOP for each context token and element."""
    return 4 * context * shape.heads * shape.head_dim * shape.layers


def _flop_s(gpu: Gpu, number_format: str) -> float:
    if number_format == "fp8" and gpu.fp8_flop_s is not None:
        return gpu.fp8_flop_s
    return gpu.bf16_flop_s


def _check(shape: ModelShape, batch: float, context: float, tp: int, derate: float = 1.0) -> None:
    if batch < 1:
        raise usage_error(f"batch {batch} must be at least 1")
    if context < 0:
        raise usage_error(f"context {context} must not be negative")
    if not 0 < derate <= 1:
        raise usage_error(f"derate {derate} must be above 0 and at most 1")
    if tp < 1 or shape.heads % tp or (shape.kv_heads % tp and tp % shape.kv_heads):
        raise usage_error(
            f"tp {tp} does not divide the {shape.heads} heads and {shape.kv_heads} KV heads "
            f"of {shape.name}"
        )
