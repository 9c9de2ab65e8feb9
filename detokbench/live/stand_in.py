"""A path that gives every row the same word: what a process does beside decoding."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.paths.empty import EmptyPath

_WORD = " word"  # about as long as an English token


class WordPath(EmptyPath):
    """Answers every row with a word, at the cost of a list."""

    name = "word"

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        return [_WORD] * len(rows)
