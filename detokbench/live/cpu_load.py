"""How much of the CPUs that a process may use is taken by the processes of its own run."""

from __future__ import annotations

from collections.abc import Mapping


def cpu_loads(
    shares: Mapping[str, float], cpus: Mapping[str, list[int] | None], usable: int
) -> dict[str, float]:
    """For each process, the part of its CPUs that the run keeps busy, at least its own share.

    ``shares`` are parts of one core, ``cpus`` where each process is pinned. Those pinned alike
    share what they have; those not pinned share the ``usable`` CPUs.
    """
    return {name: _load(name, shares, cpus, usable) for name in shares}


def _load(
    name: str, shares: Mapping[str, float], cpus: Mapping[str, list[int] | None], usable: int
) -> float:
    mine = cpus.get(name)
    together = sum(share for other, share in shares.items() if cpus.get(other) == mine)
    return max(shares[name], together / (usable if mine is None else len(mine)))
