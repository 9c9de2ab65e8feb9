"""The device that a step is timed on: what it is, and how fast it copies."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from detokbench.errors import DetokbenchError, usage_error

UNKNOWN = "unknown"
_NVIDIA_SMI_TIMEOUT_S = 10
_COPY_SAMPLES = 9
_COPIES_PER_SAMPLE = 10


@dataclass(frozen=True)
class DeviceFacts:
    """What belongs in the record beside a time. Unknown values are the word 'unknown'.

    Clocks are in MHz and are the device's highest; what it ran at under load is in the rows.
    """

    name: str
    driver: str
    cuda: str
    torch: str
    max_sm_clock_mhz: str
    max_memory_clock_mhz: str
    power_cap_w: str
    memory_bytes: int
    l2_bytes: int


def import_torch() -> Any:
    """torch, or a DetokbenchError (exit code 5) that says how to get it."""
    try:
        import torch
    except ImportError as error:
        raise DetokbenchError(
            f"timing a decode step needs torch ({error}); pip install 'detokbench[gpu]'"
        ) from error
    return torch


def cuda_available() -> bool:
    """Whether torch is here and sees a CUDA device."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def resolve_device(name: str) -> Any:
    """``cpu``, ``cuda`` or ``cuda:1`` as a torch.device with its index.

    Raises DetokbenchError: exit code 2 where there is no such device, 5 without torch.
    """
    torch = import_torch()
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise usage_error(f"'{name}' is no device; write cuda, cuda:1 or cpu") from error
    if device.type == "cpu":
        return device
    if device.type != "cuda":
        raise usage_error(f"device '{name}' cannot be timed; write cuda, cuda:1 or cpu")
    if not torch.cuda.is_available():
        raise usage_error("torch sees no CUDA device here; leave the device out for the roofline")
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise usage_error(f"there is no {name}; torch sees {torch.cuda.device_count()} device(s)")
    return torch.device("cuda", index)


def on_device(device: Any) -> AbstractContextManager[None]:
    """Make a CUDA device the current one, for its streams and events; nothing for the CPU."""
    if device.type == "cpu":
        return nullcontext()
    return cast("AbstractContextManager[None]", import_torch().cuda.device(device))


def device_facts(device: Any) -> DeviceFacts:
    """The facts of a torch.device, from torch and, where it is installed, from nvidia-smi."""
    torch = import_torch()
    if device.type == "cpu":
        return _cpu_facts(str(torch.__version__))
    properties = torch.cuda.get_device_properties(device)
    driver, sm_clock, memory_clock, power_cap = query_nvidia_smi(
        device, ("driver_version", "clocks.max.sm", "clocks.max.mem", "power.limit")
    )
    return DeviceFacts(
        name=properties.name,
        driver=driver,
        cuda=torch.version.cuda or torch.version.hip or UNKNOWN,
        torch=str(torch.__version__),  # a str of its own class, which is no plain data
        max_sm_clock_mhz=sm_clock,
        max_memory_clock_mhz=memory_clock,
        power_cap_w=power_cap,
        memory_bytes=properties.total_memory,
        l2_bytes=getattr(properties, "L2_cache_size", 0),
    )


def _cpu_facts(torch_version: str) -> DeviceFacts:
    import os
    import platform

    name = platform.processor() or platform.machine()
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    unknown = (UNKNOWN,) * 3
    return DeviceFacts(
        f"cpu ({name})", "none", "none", torch_version, *unknown, memory_bytes, l2_bytes=0
    )


def query_nvidia_smi(device: Any, fields: Sequence[str]) -> list[str]:
    """Values of nvidia-smi's query fields for a device, 'unknown' for what it does not give."""
    unknown = [UNKNOWN] * len(fields)
    program = shutil.which("nvidia-smi")
    if program is None:
        return unknown
    command = [
        program,
        f"--id={_nvidia_smi_id(device)}",
        f"--query-gpu={','.join(fields)}",
        "--format=csv,noheader,nounits",
    ]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return unknown
    return parse_nvidia_smi(answer.stdout, len(fields))


def parse_nvidia_smi(line: str, count: int) -> list[str]:
    """The values of one CSV line; ``[N/A]`` and its like become 'unknown'."""
    values = [value.strip() for value in line.strip().split(",")]
    if len(values) != count:
        return [UNKNOWN] * count
    return [UNKNOWN if not value or value.startswith("[") else value for value in values]


def _nvidia_smi_id(device: Any) -> str:
    # nvidia-smi numbers all GPUs of the machine, torch only those it is allowed to see.
    uuid = getattr(import_torch().cuda.get_device_properties(device), "uuid", None)
    return str(device.index) if uuid is None else f"GPU-{uuid}"


def measure_copy_bandwidth(device: Any, size_bytes: int = 1 << 30) -> float:
    """Bytes a second of a large copy on the device, read and written bytes both counted.

    The median of several samples. This is what a kernel that only moves memory can reach, and
    so the fair ceiling for a step that only streams weights. Frees its two buffers.
    """
    torch = import_torch()
    with on_device(device):
        source = torch.zeros(size_bytes, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        target.copy_(source)
        samples = [_copy_s(device, source, target) for _ in range(_COPY_SAMPLES)]
        del source, target
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return 2 * size_bytes / sorted(samples)[_COPY_SAMPLES // 2]


def _copy_s(device: Any, source: Any, target: Any) -> float:
    """Seconds a copy, over several."""

    def copy_all() -> None:
        for _ in range(_COPIES_PER_SAMPLE):
            target.copy_(source)

    return elapsed_s(device, copy_all) / _COPIES_PER_SAMPLE


def elapsed_s(device: Any, work: Callable[[], None]) -> float:
    """Seconds that ``work()`` takes: CUDA events of the current device, or a clock on the CPU."""
    if device.type == "cpu":
        from time import perf_counter

        start_s = perf_counter()
        work()
        return perf_counter() - start_s
    torch = import_torch()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3
