"""The texts that a front end should send, known beforehand: how many ids a text of so long is.

So no server is asked for counts or ids, which would cost it something.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.vocabulary import Vocabulary


class KnownText(msgspec.Struct, frozen=True):
    """The text of one row of ids. ``ends[i]`` counts the UTF-8 bytes of its first i ids."""

    text: bytes
    ends: list[int]

    def ids_in(self, length: int) -> int:
        """How many ids the first ``length`` bytes of the text hold whole."""
        return max(bisect_right(self.ends, length) - 1, 0)

    def text_of(self, ids: int) -> str:
        """The text of the first ids; an open character at its end is left out."""
        return self.text[: self.ends[min(ids, len(self.ends) - 1)]].decode(errors="ignore")

    @property
    def is_ascii(self) -> bool:
        """Whether no character can be split over ids, so that nothing is ever held back."""
        return self.text.isascii()


def known_texts(
    vocabulary: Vocabulary, prompts: Sequence[list[int]], outputs: Sequence[list[int]]
) -> list[KnownText]:
    """One for each row: from the bytes behind each id, else by decoding every beginning."""
    try:
        pieces = vocabulary.id_bytes.pieces
        strips = vocabulary.id_bytes.strips_leading_space
    except UnsupportedFamilyError:
        pieces, strips = [], True
    if strips:  # what comes first in a text is not what comes after a prompt
        return [
            _by_decoding(vocabulary, prompt, ids)
            for prompt, ids in zip(prompts, outputs, strict=True)
        ]
    return [_by_bytes(pieces, ids) for ids in outputs]


def _by_bytes(pieces: Sequence[bytes | None], ids: list[int]) -> KnownText:
    parts = [pieces[i] or b"" for i in ids]
    return KnownText(b"".join(parts), _running_lengths(map(len, parts)))


def _running_lengths(lengths: map[int]) -> list[int]:
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return ends


def _by_decoding(vocabulary: Vocabulary, prompt: list[int], ids: list[int]) -> KnownText:
    before = len(vocabulary.raw_decode(prompt))
    ends, whole = [0], ""
    for count in range(1, len(ids) + 1):
        text = vocabulary.raw_decode([*prompt, *ids[:count]])[before:]
        whole = text
        ends.append(max(ends[-1], len(text.rstrip("\ufffd").encode())))
    return KnownText(whole.encode(), ends)
