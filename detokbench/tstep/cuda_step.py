"""The decode step of a model timed on a device, for batches and contexts.

Timed: embedding, all layers, output head and argmax, for a batch whose sequences are all equally
long. Not timed: sampling beyond argmax, page tables, preparing inputs, anything of an engine on
the host. On the CPU the same code runs without a graph; its rows say 'cpu'.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from detokbench.errors import DetokbenchError, usage_error
from detokbench.tstep.device import elapsed_s, import_torch, on_device, resolve_device
from detokbench.tstep.gpus import Gpu
from detokbench.tstep.graph import CapturedSteps
from detokbench.tstep.resident import ResidentModel, is_out_of_memory
from detokbench.tstep.rows import TimingRow
from detokbench.tstep.samples import RoundClock, relative_range, spread_warning, take_samples
from detokbench.tstep.shapes import ModelShape

TakeSamples = Callable[[RoundClock], tuple[float, ...]]


def measured_rows(
    shape: ModelShape,
    batches: Sequence[int],
    contexts: Sequence[int],
    *,
    device: str = "cuda",
    dtype: str = "bfloat16",
    compile_layers: bool = False,
    samples: int = 9,
    sample_s: float = 0.2,
    warm_up_s: float = 1.0,
    gpu: Gpu | None = None,
    copy_bandwidth_bytes_s: float | None = None,
    copies: int | None = None,
) -> Iterator[TimingRow]:
    """Time every batch x context with random weights; each row is given as soon as it is done.

    ``context`` counts the tokens that are attended to, the new one included; 0 is taken as that
    one alone. ``gpu`` is the data sheet for ``share_of_sheet``, ``copy_bandwidth_bytes_s`` (see
    ``device.measure_copy_bandwidth``) is for ``share_of_copy``. ``copies`` is the number of
    models to rotate through, by default as many as defeat the L2 cache.

    A point that does not fit in memory is a row without a time whose note says so. Raises
    DetokbenchError: exit code 2 for a device that is not there or a model too large for it, 5
    where torch is missing or a step fails.
    """
    _check_sizes(batches, contexts)
    model = ResidentModel(shape, resolve_device(device), dtype, copies)
    take = partial(take_samples, samples=samples, sample_s=sample_s, warm_up_s=warm_up_s)
    for context in contexts:
        for batch in batches:
            point = _Point(model, batch, context, compile_layers)
            measurement = point.measure(take)
            _free_memory(model.device)
            yield point.to_row(measurement, gpu, copy_bandwidth_bytes_s)


def _check_sizes(batches: Sequence[int], contexts: Sequence[int]) -> None:
    if any(batch < 1 for batch in batches):
        raise usage_error(f"batches {list(batches)} must all be at least 1")
    if any(context < 0 for context in contexts):
        raise usage_error(f"contexts {list(contexts)} must not be negative")


def _free_memory(device: Any) -> None:
    """Give the last point's memory back before the next one asks for its own."""
    gc.collect()
    if device.type == "cuda":
        import_torch().cuda.empty_cache()


@dataclass(frozen=True)
class _Measurement:
    step_s: tuple[float, ...]
    graph_error: float | None = None
    sm_clock_mhz: float | None = None


@dataclass(frozen=True)
class _Point:
    """One batch and context of a model."""

    model: ResidentModel
    batch: int
    context: int
    compile_layers: bool

    def measure(self, take: TakeSamples) -> _Measurement | None:
        """Time the step; None where the memory does not suffice."""
        device = self.model.device
        time_step = self._time_on_cpu if device.type == "cpu" else self._time_in_graph
        try:
            with on_device(device), import_torch().inference_mode():
                return time_step(take)
        except Exception as error:
            if not is_out_of_memory(error):
                raise self._step_failed(error) from error
            return None

    def _step_failed(self, error: Exception) -> DetokbenchError:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        advice = "; try without compiling" if self.compile_layers else ""
        return DetokbenchError(f"a decode step fails on {self.model.device}: {first_line}{advice}")

    def _time_on_cpu(self, take: TakeSamples) -> _Measurement:
        model = self.model
        if model.memory_needed_bytes(self.batch, self.context) > model.memory_bytes:
            raise MemoryError
        steps, _ = model.steps(self.batch, self.context, self.compile_layers)

        def take_all(rounds: int) -> None:
            for _ in range(rounds):
                for step in steps:
                    step()

        def round_s(rounds: int) -> float:
            return elapsed_s(model.device, partial(take_all, rounds)) / rounds

        return _Measurement(_per_step(take, round_s, len(steps)))

    def _time_in_graph(self, take: TakeSamples) -> _Measurement:
        steps, eager_step = self.model.steps(self.batch, self.context, self.compile_layers)
        eager_logits = eager_step()
        captured = CapturedSteps(self.model.device, steps)
        captured.replay()
        error = relative_error(captured.logits, eager_logits)
        step_s = _per_step(take, captured.round_s, len(steps))
        clock_mhz = captured.sm_clock_mhz(median(step_s) * len(steps))
        return _Measurement(step_s, error, clock_mhz)

    def to_row(
        self,
        measurement: _Measurement | None,
        gpu: Gpu | None,
        copy_bandwidth_bytes_s: float | None,
    ) -> TimingRow:
        """The measurement as a row of the table, with the bandwidth that it amounts to."""
        bytes_read = self.model.step_bytes(self.batch, self.context)
        if measurement is None:
            return self._row(None, bytes_read, note=self._out_of_memory())
        t_step_s = median(measurement.step_s)
        achieved_bytes_s = bytes_read / t_step_s
        spread = relative_range(measurement.step_s)
        return self._row(
            t_step_s,
            bytes_read,
            samples=measurement.step_s,
            spread=spread,
            share_of_copy=_share(achieved_bytes_s, copy_bandwidth_bytes_s),
            share_of_sheet=_share(achieved_bytes_s, gpu.bandwidth_bytes_s if gpu else None),
            graph_error=measurement.graph_error,
            sm_clock_mhz=measurement.sm_clock_mhz,
            note=spread_warning(spread),
        )

    def _row(self, t_step_s: float | None, bytes_read: int, **rest: Any) -> TimingRow:
        is_cpu = self.model.device.type == "cpu"
        return TimingRow(
            self.batch, self.context, "cpu" if is_cpu else "measured", t_step_s, bytes_read, **rest
        )

    def _out_of_memory(self) -> str:
        needed = self.model.memory_needed_bytes(self.batch, self.context)
        has = self.model.memory_bytes
        return f"out of memory: weights and KV take {needed / 1e9:.1f} of {has / 1e9:.1f} GB"


def _per_step(take: TakeSamples, clock: RoundClock, steps: int) -> tuple[float, ...]:
    """Samples in seconds a step, from a clock of rounds of several steps."""
    return tuple(round_s / steps for round_s in take(clock))


def _share(achieved_bytes_s: float, of_bytes_s: float | None) -> float | None:
    return achieved_bytes_s / of_bytes_s if of_bytes_s else None


def relative_error(logits: Any, reference: Any) -> float:
    """The largest difference of two tensors of logits, over the largest reference logit."""
    difference = (logits.float() - reference.float()).abs().max()
    return float(difference / reference.float().abs().max())
