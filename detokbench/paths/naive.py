"""``naive``: decode each id by itself. Wrong wherever a character is split over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.view import RowView
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class NaivePath:
    """``emit(tokenizer.decode([id]))`` for each id, the first attempt of everybody.

    A character whose bytes are spread over several tokens comes out as U+FFFD, and a
    SentencePiece vocabulary loses every leading space. Kept as the counter-example.
    """

    name = "naive"
    whose = "every first attempt"
    expected_to_fail = "ids decoded without their neighbours lose split characters and spaces"
    thread_counts = (None,)
    stops: StopStyle | None = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._decode = vocabulary.tokenizer.decode
        self._flags: dict[int, Flags] = {}
        self._next_row = count()

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        return None

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        self._flags.update(zip(rows, flags_or_default(prompts, flags), strict=True))
        return rows

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        return [
            self._decode_each(self._flags[row], ids) for row, ids in zip(rows, new_ids, strict=True)
        ]

    def _decode_each(self, flags: Flags, ids: list[int]) -> str:
        skip = flags.skip_special_tokens
        return "".join([self._decode([i], skip_special_tokens=skip) for i in ids])

    def end(self, row: int) -> str:
        del self._flags[row]
        return ""

    def look(self, row: int) -> RowView:
        """There is no state: each id is a text of its own."""
        return RowView(window=(), held="")
