"""``text-streamer``: transformers' TextStreamer, one for each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import count

from detokbench.paths.printable import is_cjk
from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.view import RowView
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import TokenizerLike, Vocabulary


class TextStreamerPath:
    """Decodes all ids since the last newline at every step, and prints what seems settled.

    The rules are those of transformers 5.24 (generation/streamers.py): everything after a
    newline or an ideograph; letters, marks, digits and spaces at once; anything else waits for
    the next space. Releases before 5.2x knew no letters rule, so Latin text waited too.
    """

    name = "text-streamer"
    whose = "transformers TextStreamer"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = vocabulary.tokenizer
        self._rows: dict[int, _Streamer] = {}
        self._next_row = count()

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        return None

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        for row, row_flags in zip(rows, flags_or_default(prompts, flags), strict=True):
            self._rows[row] = _Streamer(self._tokenizer, row_flags)
        return rows

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        return [
            self._rows[row].put(ids) if ids else "" for row, ids in zip(rows, new_ids, strict=True)
        ]

    def end(self, row: int) -> str:
        return self._rows.pop(row).end()

    def look(self, row: int) -> RowView:
        return self._rows[row].look()


class _Streamer:
    def __init__(self, tokenizer: TokenizerLike, flags: Flags) -> None:
        self._tokenizer = tokenizer
        self._skip = flags.skip_special_tokens
        self._cache: list[int] = []
        self._printed = 0

    def put(self, ids: list[int]) -> str:
        self._cache.extend(ids)
        text = self._tokenizer.decode(self._cache, skip_special_tokens=self._skip)
        if text.endswith("\n"):
            # The last id stays as context, or the next line would lose its leading spaces.
            fresh = text[self._printed :]
            self._cache = self._cache[-1:]
            kept = self._tokenizer.decode(self._cache, skip_special_tokens=self._skip)
            self._printed = len(kept)
            return fresh
        fresh = text[self._printed :]
        if not (text and is_cjk(text[-1])) and not _is_settled(fresh):
            fresh = text[self._printed : text.rfind(" ") + 1]
        self._printed += len(fresh)
        return fresh

    def end(self) -> str:
        if not self._cache:
            return ""
        text = self._tokenizer.decode(self._cache, skip_special_tokens=self._skip)
        return text[self._printed :]

    def look(self) -> RowView:
        return RowView(tuple(self._cache), {"print_len": self._printed}, self.end())


def _is_settled(text: str) -> bool:
    """Only spaces, letters, marks and numbers; a symbol, U+FFFD included, may still change."""
    return all(char.isspace() or unicodedata.category(char)[0] in "LMN" for char in text)
