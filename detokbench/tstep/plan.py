"""What a run of ``time-step`` will do: the model, the points, the data sheet and the device.

All that can be refused is refused here, before anything is timed or written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from detokbench.errors import usage_error
from detokbench.tstep.device import DeviceFacts, cuda_available, device_facts, resolve_device
from detokbench.tstep.gpus import DEFAULT_GPU, Gpu, find_gpu, gpu_of_device
from detokbench.tstep.resident import memory_bytes
from detokbench.tstep.roofline import (
    KvFormat,
    StepTime,
    WeightFormat,
    memory_needed_bytes,
    step_time_s,
)
from detokbench.tstep.rows import PaperSource, TimingRow, paper_rows
from detokbench.tstep.shapes import ModelShape

_DEVICE = re.compile(r"auto|none|cpu|cuda(:\d+)?")


@dataclass(frozen=True)
class Asked:
    """The options that make the points. ``derate`` is the share of the peaks, None for none."""

    shape: ModelShape
    batches: Sequence[int]
    contexts: Sequence[int]
    weights: WeightFormat = "bf16"
    kv: KvFormat = "bf16"
    tp: int = 1
    derate: float | None = None

    @property
    def is_timeable(self) -> bool:
        """Whether the model that is timed is the model that is asked for: bf16, on one GPU."""
        return (self.weights, self.kv, self.tp) == ("bf16", "bf16", 1)


@dataclass(frozen=True)
class Target:
    """Where the step runs, on paper or truly.

    ``gpu`` is what the roofline is of, None for none; ``device`` the torch.device to time, None
    for none, and ``sheet`` its own line of the table, None where that is not known. ``notes``
    say what was decided for the user.
    """

    gpu: Gpu | None
    device: Any = None
    facts: DeviceFacts | None = None
    sheet: Gpu | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Points that are known to be possible, and where they run."""

    asked: Asked
    target: Target

    @property
    def label(self) -> str:
        """Names the model and where it runs, for the file of the record."""
        gpu = self.target.gpu
        return f"{self.asked.shape.name}-{'cpu' if gpu is None else gpu.name}"

    def step_time(self, batch: int, context: int, derate: float = 1.0) -> StepTime:
        """The roofline of a point. Only where there is a GPU on paper."""
        asked = self.asked
        return step_time_s(
            asked.shape,
            self._gpu,
            batch,
            context,
            weights=asked.weights,
            kv=asked.kv,
            tp=asked.tp,
            derate=derate,
        )

    def paper_rows(self) -> Iterator[TimingRow]:
        """The rows of every source that needs no device, one source after the other."""
        asked = self.asked
        if self.target.gpu is None:
            return
        for source in self._paper_sources():
            yield from paper_rows(
                asked.shape,
                self._gpu,
                asked.batches,
                asked.contexts,
                source=source,
                weights=asked.weights,
                kv=asked.kv,
                tp=asked.tp,
                derate=asked.derate or 1.0,
            )

    def memory_needed_bytes(self, batch: int, context: int) -> float:
        """Weights and KV cache of a point, on each GPU."""
        asked = self.asked
        return memory_needed_bytes(
            asked.shape, batch, context, weights=asked.weights, kv=asked.kv, tp=asked.tp
        )

    @property
    def memory_bytes(self) -> float:
        """What a point on paper has to fit into: the sheet's memory, or the limit of a CPU."""
        gpu = self.target.gpu
        return memory_bytes(self.target.device) if gpu is None else gpu.memory_bytes

    def _paper_sources(self) -> tuple[PaperSource, ...]:
        if self.asked.derate is None:
            return ("roofline", "memory-only")
        return ("roofline", "derated", "memory-only")

    @property
    def _gpu(self) -> Gpu:
        assert self.target.gpu is not None
        return self.target.gpu


def make_plan(asked: Asked, device: str, gpu_name: str | None) -> Plan:
    """Choose where to run. Raises DetokbenchError: exit code 2 for what cannot be, 5 for no torch.

    ``device`` is ``none`` for paper, ``cpu``, ``cuda`` or ``cuda:1``, or ``auto``: a CUDA device
    where there is one on which the model that is asked for can be timed, else paper.
    """
    named = None if gpu_name is None else find_gpu(gpu_name)
    if not _DEVICE.fullmatch(device):
        raise usage_error(f"--device: unknown '{device}'; known are: auto, cuda, cuda:1, cpu, none")
    _check_on_paper(asked, named or find_gpu(DEFAULT_GPU))
    if device == "none":
        return Plan(asked, _paper(named))
    if device == "cpu":
        return Plan(asked, _cpu(asked, named))
    target = _auto(asked, named) if device == "auto" else _cuda(asked, device, named)
    _check_fits(asked, target)
    return Plan(asked, target)


def _check_on_paper(asked: Asked, gpu: Gpu) -> None:
    """Let the roofline refuse what it can: batches, contexts, tp, derate."""
    step_time_s(
        asked.shape,
        gpu,
        min(asked.batches),
        min(asked.contexts),
        tp=asked.tp,
        derate=1.0 if asked.derate is None else asked.derate,
    )


def _paper(named: Gpu | None, *notes: str) -> Target:
    return Target(gpu=named or find_gpu(DEFAULT_GPU), notes=notes)


def _cpu(asked: Asked, named: Gpu | None) -> Target:
    # A step of a CPU beside the roofline of a GPU would be read as a comparison.
    if named is not None or asked.derate is not None or not asked.is_timeable:
        raise usage_error(
            "--device cpu times a bf16 step on this CPU only; leave out --gpu, --derate, --tp, "
            "--weights and --kv"
        )
    device = resolve_device("cpu")
    target = Target(gpu=None, device=device, facts=device_facts(device))
    _check_fits(asked, target)
    return target


def _cuda(asked: Asked, name: str, named: Gpu | None) -> Target:
    if not asked.is_timeable:
        raise usage_error(
            "the step that is timed is bf16 on one GPU; --tp, --weights and --kv change the "
            "roofline: use them with --device none"
        )
    target = _detect(name, named)
    if named is not None and target.sheet != named:
        assert target.facts is not None
        raise usage_error(
            f"--gpu {named.name} is not the device here ({target.facts.name}); leave --gpu out, "
            "or use --device none"
        )
    return target


def _auto(asked: Asked, named: Gpu | None) -> Target:
    """Time the CUDA device if there is one and it is what was asked for; say so if it is not."""
    if not cuda_available():
        return _paper(named)
    target = _detect("cuda", named)
    assert target.facts is not None
    here = f"the {target.facts.name} here is not timed"
    if not asked.is_timeable:
        return _paper(named or target.sheet, f"{here}: its step would be bf16 on one GPU")
    if named is not None and target.sheet != named:
        return _paper(named, f"{here}: --gpu names another; leave it out to time this one")
    if memory_needed_bytes(asked.shape, 1, 0) > memory_bytes(target.device):
        return _paper(named or target.sheet, f"{here}: {asked.shape.name} does not fit")
    return target


def _detect(name: str, named: Gpu | None) -> Target:
    """The CUDA device and its line of the table; one that the table lacks takes ``named``."""
    device = resolve_device(name)
    facts = device_facts(device)
    sheet = gpu_of_device(facts.name) or named
    if sheet is not None:
        return Target(sheet, device, facts, sheet)
    note = (
        f"{facts.name} is not in the table of GPUs: the roofline is that of {DEFAULT_GPU}; "
        "--gpu names another"
    )
    return Target(find_gpu(DEFAULT_GPU), device, facts, None, (note,))


def _check_fits(asked: Asked, target: Target) -> None:
    """Refuse contexts of which not even one sequence fits on the device that is to be timed."""
    if target.device is None:
        return
    has = memory_bytes(target.device)
    for context in asked.contexts:
        needed = memory_needed_bytes(asked.shape, 1, max(context, 1))
        if needed > has:
            raise usage_error(
                f"{asked.shape.name} with a context of {context:,} takes {needed / 1e9:.1f} GB "
                f"at batch 1, and {target.device} has {has / 1e9:.1f} GB; choose a smaller model "
                "or context, or --device none for the roofline"
            )
