"""``byte-table``: ours, the cure. A table from id to text; no tokenizer call at all."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from operator import index

from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.view import RowView
from detokbench.stops.request import StopStyle
from detokbench.vocab.id_bytes import IdBytes, UnsupportedFamilyError
from detokbench.vocab.vocabulary import Vocabulary

_LONGEST_OPEN = 3  # bytes of a UTF-8 character that lacks its last one


class ByteTablePath:
    """One list look-up for a token that is whole text; bytes are joined while a character is open.

    What is sent never changes. A byte that cannot continue the open character gives one U+FFFD
    for each maximal invalid part, at once; a genuine U+FFFD is sent at once too; an open
    character at the end of a stream is flushed as U+FFFD. Ids that are no ids are counted in
    ``bad_ids`` and skipped.
    """

    name = "byte-table"
    whose = "detokbench"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "matcher"

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Raises UnsupportedFamilyError where a table cannot stand for the vocabulary's decode."""
        table = vocabulary.id_bytes
        self._strips_leading_space = table.strips_leading_space
        self._leading_space = table.leading_space
        self._skipping = _view(table, skip_special_tokens=True)
        self._keeping = _view(table, skip_special_tokens=False)
        self._view_of: dict[int, _View] = {}
        # Rows that a look-up alone cannot serve: their open bytes, often none yet.
        self._unsettled: dict[int, bytes] = {}
        self._at_start: set[int] = set()
        self._rows_keeping = 0
        self._next_row = count()
        self.bad_ids = 0

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        try:
            _ = vocabulary.id_bytes
        except UnsupportedFamilyError as error:
            return str(error)
        return None

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        for row, prompt, row_flags in zip(
            rows, prompts, flags_or_default(prompts, flags), strict=True
        ):
            view = self._skipping if row_flags.skip_special_tokens else self._keeping
            self._view_of[row] = view
            self._rows_keeping += view is self._keeping
            open_bytes = view.open_bytes_after(prompt)
            at_start = self._strips_leading_space and not view.has_text(prompt)
            if at_start:
                self._at_start.add(row)
            if open_bytes or at_start:
                self._unsettled[row] = open_bytes
        return rows

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        if not self._unsettled and not self._rows_keeping:
            texts = self._skipping.texts
            try:  # the usual step: one id a row, each of them whole text
                deltas = [texts[i] if i >= 0 else None for (i,) in new_ids]
            except (ValueError, IndexError, TypeError):
                deltas = [None]
            if None not in deltas:
                return deltas  # type: ignore[return-value]
        return self._step_each(rows, new_ids)

    def _step_each(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        """Row by row; what is usual is spelt out here, since a call for each would cost as much."""
        unsettled, at_start = self._unsettled, self._at_start
        texts, pieces = self._skipping.texts, self._skipping.pieces
        deltas = []
        for row, ids in zip(rows, new_ids, strict=True):
            if self._rows_keeping or len(ids) != 1 or row in at_start:
                deltas.append(self._feed(row, ids))
                continue
            token_id = ids[0]
            try:
                piece = pieces[token_id] if token_id >= 0 else None
            except (IndexError, TypeError):
                piece = None
            open_bytes = unsettled.get(row)
            if piece is None:
                deltas.append(self._feed(row, ids))
            elif open_bytes is None and (text := texts[token_id]) is not None:
                deltas.append(text)
            else:
                data = piece if open_bytes is None else open_bytes + piece
                text, used = utf_8_decode(data, "replace", False)
                if used < len(data):
                    unsettled[row] = data[used:]
                elif open_bytes is not None:
                    del unsettled[row]
                deltas.append(text)
        return deltas

    def _feed(self, row: int, ids: list[int]) -> str:
        """Join bytes and send every character that they complete."""
        view = self._view_of[row]
        data = self._unsettled.pop(row, b"") + self._bytes_of(view, ids)
        if row in self._at_start:
            if not data:
                self._unsettled[row] = b""
                return ""
            self._at_start.remove(row)
            data = data[self._leading_space([i for i in ids if view.piece(i)]) :]
        text, used = utf_8_decode(data, "replace", False)
        if used < len(data):
            self._unsettled[row] = data[used:]
        return text

    def _bytes_of(self, view: _View, ids: list[int]) -> bytes:
        pieces = []
        for token_id in ids:
            piece = view.piece(token_id)
            if piece is None:
                self.bad_ids += 1
            else:
                pieces.append(piece)
        return b"".join(pieces)

    def end(self, row: int) -> str:
        self._rows_keeping -= self._view_of.pop(row) is self._keeping
        self._at_start.discard(row)
        return self._unsettled.pop(row, b"").decode("utf-8", "replace")

    def look(self, row: int) -> RowView:
        open_bytes = self._unsettled.get(row, b"")
        return RowView(offsets={"open_bytes": len(open_bytes)}, held=open_bytes)


class _View:
    """The table under one setting of skip_special_tokens.

    ``pieces[i]`` are the bytes of an id, ``texts[i]`` its text, None where it is not whole text;
    both are None for a number that is no id.
    """

    def __init__(self, table: IdBytes, skip_special_tokens: bool) -> None:
        skipped = table.special_ids if skip_special_tokens else frozenset()
        self.pieces = [b"" if i in skipped else piece for i, piece in enumerate(table.pieces)]
        self.texts = [_text_of(piece) for piece in self.pieces]

    def piece(self, token_id: object) -> bytes | None:
        """The bytes of an id; None for anything that is no id of this vocabulary."""
        try:
            number = index(token_id)  # type: ignore[arg-type]
        except TypeError:
            return None
        return self.pieces[number] if 0 <= number < len(self.pieces) else None

    def has_text(self, prompt: list[int]) -> bool:
        """Whether any id of the prompt puts something into the text."""
        return any(self.piece(i) for i in prompt)

    def open_bytes_after(self, prompt: list[int]) -> bytes:
        """The bytes at the prompt's end that begin a character and do not finish it."""
        tail = b""
        for token_id in reversed(prompt):
            tail = (self.piece(token_id) or b"") + tail
            if len(tail) >= _LONGEST_OPEN:
                break
        tail = tail[-_LONGEST_OPEN:]
        for start in range(len(tail)):
            if tail[start] & 0xC0 == 0x80:
                continue  # the middle of a character that began earlier
            _, used = utf_8_decode(tail[start:], "replace", False)
            return tail[start + used :]
        return b""


@lru_cache(maxsize=4)
def _view(table: IdBytes, skip_special_tokens: bool) -> _View:
    """Kept, since every path object on a vocabulary needs the same two."""
    return _View(table, skip_special_tokens)


def _text_of(piece: bytes | None) -> str | None:
    if piece is None:
        return None
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None
