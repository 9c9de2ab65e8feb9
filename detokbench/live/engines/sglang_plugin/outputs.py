"""What the engine answers with: the ids of the run's workload."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Output:
    """The ids of one answer, whole and one by one, as the arrays in which SGLang sends them."""

    __slots__ = ("ids", "pieces")

    def __init__(self, ids: Sequence[int], eos: int) -> None:
        """An id ``eos`` is added at the end where there is none yet."""
        whole = [*ids] if ids and ids[-1] == eos else [*ids, eos]
        self.ids = array("q", whole)
        self.pieces = [array("q", (token,)) for token in whole]


class Outputs:
    """Answers by the number that a request carries as its seed; None gets the first."""

    def __init__(self, outputs: Sequence[Sequence[int]], eos: int) -> None:
        """Raises ValueError where there are none."""
        if not outputs:
            raise ValueError("the workload has no outputs")
        self.eos = eos
        self._outputs = [Output(ids, eos) for ids in outputs]

    @classmethod
    def read(cls, path: Path) -> Outputs:
        """Read msgpack ``{"outputs": [[id, …], …], "eos": id}``."""
        import msgspec

        held: Any = msgspec.msgpack.decode(path.read_bytes())
        return cls(held["outputs"], held["eos"])

    def of(self, number: int | None) -> Output:
        return self._outputs[(number or 0) % len(self._outputs)]
