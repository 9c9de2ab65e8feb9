"""A path that does nothing: what the protocol and the timing loop cost on their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from detokbench.paths.protocol import Flags
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class EmptyPath:
    """Answers every row with an empty string. Measured as the floor, never listed as a path."""

    name = "empty"
    whose = "the harness"
    expected_to_fail = "it emits nothing"
    thread_counts = (None,)
    stops: StopStyle | None = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._next_row = count()

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        return None

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        return [next(self._next_row) for _ in prompts]

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        return [""] * len(rows)

    def end(self, row: int) -> str:
        return ""
