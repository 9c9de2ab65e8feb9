"""One row of a path by itself: for whoever follows a single stream."""

from __future__ import annotations

from detokbench.paths.protocol import DetokPath, Flags


class PathRow:
    """A row that opens with its prompt, takes ids and gives text, and is closed by ``end``."""

    def __init__(self, path: DetokPath, prompt: list[int], flags: Flags) -> None:
        self._path = path
        (self.number,) = path.open([prompt], [flags])

    def step(self, new_ids: list[int]) -> str:
        """The text that the row may send now. Raises TypeError for what is no text."""
        (text,) = self._path.step([self.number], [new_ids])
        return _text(text)

    def end(self) -> str:
        """Close the row; the text that was still held, as far as the path gives it."""
        return _text(self._path.end(self.number))


def _text(given: object) -> str:
    """Paths of others may break the protocol: what they give is the first to tell."""
    if not isinstance(given, str):
        raise TypeError(f"the path gave {type(given).__name__} where a text was due")
    return given
