"""Which processes a topology has, which of them sends to which, and on which CPU each runs."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from detokbench.live.plan import Topology

ENGINE, CLIENTS = "engine", "clients"
_MODULES = {
    ("vllm", "front-end"): "detokbench.live.vllm_frontend",
    ("sglang", "front-end"): "detokbench.live.sglang_frontend",
    ("sglang", "detokenizer"): "detokbench.live.sglang_detokenizer",
}

Route = Callable[[int], int]
"""Request → which of the next processes gets its rows."""


@dataclass(frozen=True)
class Processes:
    """The processes of one pipeline by name, in the order of the data."""

    topology: Topology
    detokenizers: tuple[str, ...]
    front_ends: tuple[str, ...]
    has_clients: bool

    @classmethod
    def of(cls, topology: Topology, front_ends: int, detokenizers: int, http: bool) -> Processes:
        """Names are numbered where there are several."""
        count = detokenizers if topology == "sglang" else 0
        return cls(topology, _names("detokenizer", count), _names("front-end", front_ends), http)

    @property
    def host(self) -> tuple[str, ...]:
        """Those between the engine and the clients."""
        return (*self.detokenizers, *self.front_ends)

    @property
    def names(self) -> tuple[str, ...]:
        return (ENGINE, *self.host, *((CLIENTS,) if self.has_clients else ()))

    @property
    def decoding(self) -> tuple[str, ...]:
        """Those that turn ids into text."""
        return self.detokenizers or self.front_ends

    @property
    def after_engine(self) -> tuple[str, ...]:
        """Those that the engine sends to."""
        return self.decoding

    def modules(self) -> dict[str, str]:
        """The module that each process runs."""
        modules = {ENGINE: "detokbench.live.engine"}
        for name in self.host:
            kind = name.rstrip("0123456789").rstrip("-")
            modules[name] = _MODULES[(self.topology, kind)]
        if self.has_clients:
            modules[CLIENTS] = "detokbench.live.clients"
        return modules

    def cpus(self, usable: list[int]) -> dict[str, list[int] | None]:
        """A CPU for each process while there are enough.

        Else those that decode have one each and the others share what is left; where not even
        that is possible, nothing is pinned.
        """
        order = [*self.decoding, *(name for name in self.names if name not in self.decoding)]
        if len(order) <= len(usable):
            return {name: [cpu] for name, cpu in zip(order, reversed(usable), strict=False)}
        own = len(self.decoding)
        if own >= len(usable):
            return dict.fromkeys(order)
        left = usable[: len(usable) - own]
        mine = dict(zip(self.decoding, reversed(usable), strict=False))
        return {name: [mine[name]] if name in mine else left for name in order}


def _names(kind: str, count: int) -> tuple[str, ...]:
    return (kind,) if count == 1 else tuple(f"{kind}-{number}" for number in range(count))


def route_of(topology: Topology, targets: int, front_ends: int) -> Route:
    """vLLM deals requests to front ends in turn. SGLang picks a detokenizer by hash.

    As its ``MultiDetokenizerRouter`` (0.5.23, managers/multi_tokenizer_mixin.py): by the hash of
    the front end's address where there are several, else of the request, so that a detokenizer may
    get nothing. Its router is a process of its own; here the engine does it.
    """
    if targets == 1:
        return lambda number: 0
    if topology == "vllm":
        return lambda number: number % targets
    if front_ends > 1:
        return lambda number: zlib.crc32(f"front-end-{number % front_ends}".encode()) % targets
    return lambda number: zlib.crc32(f"request-{number}".encode()) % targets


def rows_each(topology: Topology, targets: int, front_ends: int, batch: int) -> list[int]:
    """How many of a batch's requests each of the next processes gets."""
    route = route_of(topology, targets, front_ends)
    counted = Counter(map(route, range(batch)))
    return [counted[target] for target in range(targets)]
