"""``rust-batch``: the two windows through the Rust crate's own ``decode_batch``."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.paths.protocol import Flags
from detokbench.paths.sglang_windows import SglangWindows, decode_present
from detokbench.paths.view import RowView
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class RustBatchPath:
    """What ``batch-decode`` is believed to be: the loop over rows in Rust, without the GIL.

    With more than one thread the rows are spread over the crate's thread pool.
    """

    name = "rust-batch"
    whose = "what batch-decode is believed to be"
    expected_to_fail = ""
    thread_counts = (1, 0)
    stops: StopStyle | None = "tokens"

    def __init__(self, vocabulary: Vocabulary, max_states: int | None = None) -> None:
        self._rust = vocabulary.rust
        self._windows = SglangWindows(vocabulary.size, max_states)

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        return None if vocabulary.is_rust else "decode_batch needs a Rust tokenizer"

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
        return decode_present(windows, flags, self._decode_by_flag)

    def _decode_by_flag(self, windows: list[list[int]], flags: list[Flags]) -> list[str]:
        """``decode_batch`` takes one flag for all rows, so both kinds of rows go apart."""
        assert self._rust is not None
        texts = [""] * len(windows)
        for skip in {row_flags.skip_special_tokens for row_flags in flags}:
            rows = [i for i, row_flags in enumerate(flags) if row_flags.skip_special_tokens == skip]
            decoded = self._rust.decode_batch(
                [windows[row] for row in rows], skip_special_tokens=skip
            )
            if len(rows) == len(windows):
                return decoded
            for row, text in zip(rows, decoded, strict=True):
                texts[row] = text
        return texts
