"""The right text of a stream: the vocabulary's own bytes, decoded as UTF-8, and nothing else.

The bytes of prompt and output are one text, from which one leading space is taken where the
vocabulary strips it. Each maximal invalid part of it gives one U+FFFD (Unicode 3.9, as Python's
``errors="replace"`` has it). A character that the prompt leaves open belongs to the output, and a
genuine U+FFFD at the prompt's end to the prompt.

Written apart from ``paths/byte_table.py``, which is judged by it.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from operator import index

from detokbench.vocab.id_bytes import IdBytes

_Decoder = getincrementaldecoder("utf-8")


def piece_of(table: IdBytes, token_id: object) -> bytes | None:
    """The bytes of an id; None for whatever is no id of the vocabulary, of any size or type."""
    try:
        number = index(token_id)  # type: ignore[arg-type]
    except TypeError:
        return None
    return table.pieces[number] if 0 <= number < len(table.pieces) else None


def shown_ids(table: IdBytes, ids: Sequence[object], skip_special_tokens: bool) -> list[int]:
    """The ids that put something into a text: neither what is no id, nor a skipped one."""
    skipped = table.special_ids if skip_special_tokens else frozenset()
    # An id that has a piece can be looked up in a set; what has none may not even be hashable.
    known = [index(token_id) for token_id in ids if piece_of(table, token_id)]  # type: ignore[arg-type]
    return [token_id for token_id in known if token_id not in skipped]


def shown_bytes(table: IdBytes, ids: Sequence[object], skip_special_tokens: bool) -> bytes:
    """What ``ids`` put into a text, a leading space included."""
    shown = shown_ids(table, ids, skip_special_tokens)
    return b"".join(table.pieces[token_id] or b"" for token_id in shown)


def _from_start(table: IdBytes, ids: Sequence[object], skip_special_tokens: bool) -> bytes:
    """The same without the space that the vocabulary drops at the start of a text."""
    shown = shown_ids(table, ids, skip_special_tokens)
    joined = b"".join(table.pieces[token_id] or b"" for token_id in shown)
    return joined[table.leading_space(shown) :]


def reference_text(
    table: IdBytes,
    prompt: Sequence[object],
    output: Sequence[object],
    skip_special_tokens: bool = True,
) -> str:
    """The text of ``output`` after ``prompt``, decoded as a whole, characters cut short included.

    Never raises: whatever stands among the ids and is none is left out.
    """
    before = _from_start(table, prompt, skip_special_tokens)
    data = _from_start(table, [*prompt, *output], skip_special_tokens)
    return data.decode("utf-8", "replace")[len(_Decoder("replace").decode(before)) :]


class ReferenceStream:
    """The same text as it becomes certain; a ``TextRow``.

    A character is certain with its last byte, a U+FFFD with the byte that shows that no character
    comes.
    """

    def __init__(
        self, table: IdBytes, prompt: Sequence[object] = (), skip_special_tokens: bool = True
    ) -> None:
        self._table = table
        self._skip = skip_special_tokens
        self._decoder = _Decoder("replace")
        self._at_start = table.strips_leading_space
        self.step(prompt)

    def step(self, new_ids: Sequence[object]) -> str:
        """The text that these ids make certain."""
        if self._at_start:
            data = _from_start(self._table, new_ids, self._skip)
            self._at_start = not shown_ids(self._table, new_ids, self._skip)
        else:
            data = shown_bytes(self._table, new_ids, self._skip)
        return self._decoder.decode(data)

    def peek(self, new_ids: Sequence[object]) -> str:
        """What ``step`` would give, without taking it."""
        state, at_start = self._decoder.getstate(), self._at_start
        text = self.step(new_ids)
        self._decoder.setstate(state)
        self._at_start = at_start
        return text

    @property
    def open_bytes(self) -> bytes:
        """The bytes of a character that has begun and lacks its end; three at most."""
        return self._decoder.getstate()[0]

    def end(self) -> str:
        """U+FFFD for a character that is still open, or nothing."""
        return self._decoder.decode(b"", final=True)
