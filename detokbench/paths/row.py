"""One row of a path by itself: for whoever follows a single stream."""

from __future__ import annotations

from detokbench.paths.protocol import DetokPath, Flags


class PathRow:
    """A row that opens with its prompt, takes ids and gives text, and is closed by ``end``."""

    def __init__(self, path: DetokPath, prompt: list[int], flags: Flags) -> None:
        self._path = path
        (self.number,) = path.open([prompt], [flags])

    def step(self, new_ids: list[int]) -> str:
        """The text that the row may send now."""
        return self._path.step([self.number], [new_ids])[0]

    def end(self) -> str:
        """Close the row; the text that was still held, as far as the path gives it."""
        return self._path.end(self.number)
