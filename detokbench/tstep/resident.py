"""A model that lies on a device: its random weights, what it reads, and the steps it can take."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import nearest
from detokbench.tstep.device import import_torch, on_device
from detokbench.tstep.graph import Step
from detokbench.tstep.shapes import ModelShape

if TYPE_CHECKING:
    from detokbench.tstep.llama import LayerFunction, LlamaWeights

_DTYPES = ("bfloat16", "float16", "float32")
# The weights and caches that a round walks through exceed the L2 cache this many times, so that
# nothing of one round is left there for the next.
_TIMES_L2 = 4
# Where the device does not tell its L2 size: larger than any GPU's of 2025 (B200: 126 MB).
_ASSUMED_L2_BYTES = 128 << 20
# The CPU is there to show that the code runs; a model of real size would only fill the memory.
_CPU_LIMIT_BYTES = 2e9


class ResidentModel:
    """One or several copies of a model with random weights, allocated on the device itself.

    Raises DetokbenchError (exit code 2) where they do not fit.
    """

    def __init__(self, shape: ModelShape, device: Any, dtype: str, copies: int | None) -> None:
        if dtype not in _DTYPES:
            raise usage_error(f"unknown dtype '{dtype}'{nearest(dtype, _DTYPES)}")
        torch = import_torch()
        self.shape = shape
        self.device = device
        self._dtype = getattr(torch, dtype)
        self._value_bytes = int(self._dtype.itemsize)
        self.memory_bytes = memory_bytes(device)
        self._weights = self._allocate(copies)

    def _allocate(self, copies: int | None) -> list[LlamaWeights]:
        from detokbench.tstep.llama import random_weights

        weight_bytes = self.shape.total_params * self._value_bytes
        if weight_bytes > self.memory_bytes:
            raise self._too_large(weight_bytes)
        count = copies or copies_to_defeat_l2(weight_bytes, _l2_bytes(self.device))
        try:
            with on_device(self.device):
                return [
                    random_weights(self.shape, self.device, self._dtype, seed)
                    for seed in range(count)
                ]
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise self._too_large(weight_bytes * count) from error

    def _too_large(self, weight_bytes: float) -> DetokbenchError:
        return usage_error(
            f"the weights of {self.shape.name} take {weight_bytes / 1e9:.1f} GB and {self.device} "
            f"has {self.memory_bytes / 1e9:.1f} GB; choose a smaller model, or the roofline"
        )

    def step_bytes(self, batch: int, context: int) -> int:
        """Bytes that a step must read: the streamed weights and the whole KV cache."""
        return (self.shape.streamed_params + self._kv_values(batch, context)) * self._value_bytes

    def memory_needed_bytes(self, batch: int, context: int) -> int:
        """Bytes of weights and caches that a point keeps on the device, in all copies."""
        values = self.shape.total_params + self._kv_values(batch, context)
        return len(self._weights) * values * self._value_bytes

    def _kv_values(self, batch: int, context: int) -> int:
        return batch * max(context, 1) * self.shape.kv_values_per_token

    def steps(self, batch: int, context: int, compile_layers: bool) -> tuple[list[Step], Step]:
        """A step for each copy of the model, and the first one again, never compiled.

        A step returns its logits. It takes the same ids at the same position each time, so that
        it can be repeated for ever.
        """
        from detokbench.tstep.llama import decode_step, decoder_layer, make_rotary, random_cache

        torch, shape, length = import_torch(), self.shape, max(context, 1)
        rotary = make_rotary(shape, length, self.device, self._dtype)
        ids = torch.arange(batch, device=self.device) % shape.vocab
        caches = [
            random_cache(shape, batch, length, self.device, self._dtype, seed=copy)
            for copy in range(len(self._weights))
        ]

        def step(copy: int, layer_function: LayerFunction) -> Any:
            logits, _ = decode_step(
                shape,
                self._weights[copy],
                caches[copy],
                rotary,
                ids,
                position=length - 1,
                layer_function=layer_function,
            )
            return logits

        layer_function = _compiled(decoder_layer) if compile_layers else decoder_layer
        return (
            [partial(step, copy, layer_function) for copy in range(len(caches))],
            partial(step, 0, decoder_layer),
        )


def _compiled(layer_function: LayerFunction) -> LayerFunction:
    """One layer compiled, which serves all of them: 32 times less to compile than the step."""
    torch = import_torch()
    # Every point has its own sizes: forget the last one's, or the limit of recompiling is hit.
    torch.compiler.reset()
    compiled: LayerFunction = torch.compile(layer_function, fullgraph=True, dynamic=False)
    return compiled


def copies_to_defeat_l2(model_bytes: int, l2_bytes: int) -> int:
    """How many models a round must walk through to exceed the L2 cache several times."""
    return max(1, math.ceil(_TIMES_L2 * l2_bytes / model_bytes))


def memory_bytes(device: Any) -> float:
    """Bytes that a model may take on a torch.device; on the CPU a limit set on purpose."""
    if device.type == "cpu":
        return _CPU_LIMIT_BYTES
    return float(import_torch().cuda.get_device_properties(device).total_memory)


def _l2_bytes(device: Any) -> int:
    if device.type == "cpu":
        return 0
    properties = import_torch().cuda.get_device_properties(device)
    return int(getattr(properties, "L2_cache_size", 0)) or _ASSUMED_L2_BYTES


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, here or in an error that this one hides.

    Running out during a capture surfaces as a failed capture, with the reason as its context.
    """
    while error is not None:
        if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False
