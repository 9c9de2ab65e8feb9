"""``batch-decode``: SGLang's DetokenizerManager as it runs by default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from detokbench.paths.protocol import Flags
from detokbench.paths.sglang_windows import SglangWindows, decode_present
from detokbench.paths.view import RowView
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class BatchDecodePath:
    """Two ``batch_decode`` calls a step for the whole batch.

    Rows are grouped by their flags and empty windows are left out. Where the tokenizer is not
    Rust, rows are decoded one by one. In transformers 4.57 to 5.24 ``batch_decode`` is itself a
    Python loop over the rows; nothing is moved into Rust.
    """

    name = "batch-decode"
    whose = "SGLang DetokenizerManager"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "tokens"

    def __init__(self, vocabulary: Vocabulary, max_states: int | None = None) -> None:
        self._tokenizer = vocabulary.tokenizer
        self._windows = SglangWindows(vocabulary.size, max_states)
        self._decode_rows = self._decode_grouped if vocabulary.is_rust else self._decode_one_by_one

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
        return decode_present(windows, flags, self._decode_rows)

    def _decode_grouped(self, windows: list[list[int]], flags: list[Flags]) -> list[str]:
        first = flags[0]
        if all(row_flags == first for row_flags in flags):
            return self._batch_decode(windows, first)
        rows_by_flags: dict[Flags, list[int]] = defaultdict(list)
        for row, row_flags in enumerate(flags):
            rows_by_flags[row_flags].append(row)
        texts = [""] * len(windows)
        for group_flags, rows in rows_by_flags.items():
            decoded = self._batch_decode([windows[row] for row in rows], group_flags)
            for row, text in zip(rows, decoded, strict=True):
                texts[row] = text
        return texts

    def _batch_decode(self, windows: list[list[int]], flags: Flags) -> list[str]:
        return self._tokenizer.batch_decode(
            windows,
            skip_special_tokens=flags.skip_special_tokens,
            spaces_between_special_tokens=flags.spaces_between_special_tokens,
        )

    def _decode_one_by_one(self, windows: list[list[int]], flags: list[Flags]) -> list[str]:
        return [
            self._decode_row(ids, row_flags) for ids, row_flags in zip(windows, flags, strict=True)
        ]

    def _decode_row(self, ids: list[int], flags: Flags) -> str:
        """SGLang's way around tokenizers that know no flags: drop special ids, then decode."""
        if flags.skip_special_tokens:
            special = set(self._tokenizer.all_special_ids)
            ids = [i for i in ids if i not in special]
        return self._tokenizer.decode(ids)
