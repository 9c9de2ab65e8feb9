"""``row-decode``: SGLang with ``--disable-tokenizer-batch-decode``."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.paths.protocol import Flags
from detokbench.paths.sglang_windows import SglangWindows
from detokbench.paths.view import RowView
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class RowDecodePath:
    """Two ``decode`` calls for each row and step, empty windows included."""

    name = "row-decode"
    whose = "SGLang with batch decode disabled"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "tokens"

    def __init__(self, vocabulary: Vocabulary, max_states: int | None = None) -> None:
        self._tokenizer = vocabulary.tokenizer
        self._windows = SglangWindows(vocabulary.size, max_states)

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        return None

    @property
    def states_lost(self) -> int:
        """Rows that started anew because the state table had dropped them."""
        return self._windows.states_lost

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        return self._windows.open(prompts, flags)

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        return self._windows.step(rows, new_ids, self._decode)

    def end(self, row: int) -> str:
        return self._windows.end(row, self._decode)

    def look(self, row: int) -> RowView:
        return self._windows.look(row, self._decode)

    def _decode(self, windows: list[list[int]], flags: list[Flags]) -> list[str]:
        decode = self._tokenizer.decode
        return [
            decode(
                ids,
                skip_special_tokens=row_flags.skip_special_tokens,
                spaces_between_special_tokens=row_flags.spaces_between_special_tokens,
            )
            for ids, row_flags in zip(windows, flags, strict=True)
        ]
