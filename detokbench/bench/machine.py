"""Facts about the machine and the software, and what about them disturbs a timing.

The machine is looked at and never tuned. No user, host or folder is among the facts.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "tokenizers",
    "transformers",
    "llama-models",
    "mistral-common",
    "sentencepiece",
    "tiktoken",
    "torch",
    "vllm",
    "sglang",
)
# The load average still holds what ran a minute ago, so use is looked at for a moment instead.
_LOOK_S = 0.15
_BUSY_PERCENT = 30


def usable_cpus() -> list[int]:
    """CPUs this process may run on; numbers from 0 where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin_to(cpus: list[int] | None) -> bool:
    """Let the calling thread run on these CPUs only; False where the system has no such call."""
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:
        return False
    return True


def machine_facts() -> dict[str, object]:
    """CPU, memory, load and interpreter, as they are now."""
    import psutil

    return {
        "cpu": _cpu_name(),
        "architecture": platform.machine(),
        "cpus_usable": len(usable_cpus()),
        "cpus_total": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "free_threaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
        "load_1min": round(os.getloadavg()[0], 2),
        "busy_percent": psutil.cpu_percent(interval=_LOOK_S),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "steal_percent": getattr(psutil.cpu_times_percent(interval=None), "steal", None),
        "virtual": "hypervisor" in (_read("/proc/cpuinfo") or ""),
    }


def package_versions() -> dict[str, str]:
    """Versions of the packages that decide the figures, of those installed here."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def disturbances(facts: dict[str, object]) -> list[str]:
    """What about the machine disturbs a timing, each with what to do about it."""
    warnings = []
    busy, cpus = facts["busy_percent"], facts["cpus_usable"]
    assert isinstance(busy, float) and isinstance(cpus, int)
    if busy > _BUSY_PERCENT:
        warnings.append(
            f"the machine is busy ({busy:.0f} % of {cpus} CPUs before the run began): stop what "
            "else runs, or compare ratios only"
        )
    governor = facts["governor"]
    if isinstance(governor, str) and governor not in {"performance", "schedutil"}:
        warnings.append(
            f"the CPU frequency governor is '{governor}': times drift; 'performance' is steadier"
        )
    if not hasattr(os, "sched_setaffinity"):
        warnings.append("this system cannot pin a process to a CPU: expect a wider spread")
    if cpus == 1:
        warnings.append("one CPU only: whatever else runs lands in the times; use two or more")
    return warnings


def _cpu_name() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
