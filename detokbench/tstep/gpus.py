"""GPUs by name: memory, bandwidth and dense matrix rates, from the vendors' data sheets."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, toml

from detokbench.errors import usage_error
from detokbench.grammar import nearest

DEFAULT_GPU = "h100-sxm"
_Positive = Annotated[float, Meta(gt=0)]
_Text = Annotated[str, Meta(min_length=1)]


class Gpu(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the table. Rates are dense, that is without structured sparsity.

    ``device_names`` are the names that the driver reports for it; ``fp8_flop_s`` is None where
    the hardware has no fp8; ``note`` says which of several published figures was taken, and why.
    """

    name: _Text
    title: _Text
    memory_gb: _Positive
    bandwidth_bytes_s: _Positive
    bf16_flop_s: _Positive
    source: _Text
    fp8_flop_s: _Positive | None = None
    device_names: tuple[str, ...] = ()
    note: str = ""

    @property
    def memory_bytes(self) -> float:
        """Memory of the data sheet, a GB taken as 10^9 bytes.

        Vendors mean 2^30, so this leaves 7 % for the context, the workspaces and activations.
        """
        return self.memory_gb * 1e9


class _Table(Struct, forbid_unknown_fields=True):
    gpu: list[Gpu]


@cache
def known_gpus() -> tuple[Gpu, ...]:
    """All GPUs of the table, in the order of the file."""
    text = Path(__file__).with_name("gpus.toml").read_bytes()
    return tuple(toml.decode(text, type=_Table).gpu)


def find_gpu(name: str) -> Gpu:
    """A GPU by name. Raises DetokbenchError (exit code 2) that names the nearest one."""
    for gpu in known_gpus():
        if gpu.name == name.lower():
            return gpu
    raise usage_error(f"unknown GPU '{name}'{_nearest_gpu(name.lower())}")


def _nearest_gpu(name: str) -> str:
    """The nearest name by its beginning: ``h101`` means an H100, whatever its board."""
    names = [gpu.name for gpu in known_gpus()]
    beginnings: dict[str, str] = {}
    for known in sorted(names, key=len):
        beginnings.setdefault(known[: len(name)], known)
    close = get_close_matches(name, beginnings, n=1, cutoff=0.5)
    return nearest(beginnings[close[0]] if close else name, names)


def gpu_of_device(device_name: str) -> Gpu | None:
    """The table's line for a device name as the driver reports it, or None if it has none."""
    for gpu in known_gpus():
        if device_name in gpu.device_names:
            return gpu
    return None
