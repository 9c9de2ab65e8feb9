"""Kinds of ids, by their bytes: what can go wrong depends on these and hardly on the words.

A kind is told from the vocabulary's table alone, so that a representative of each can be found on
any vocabulary that has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from detokbench.vocab.id_bytes import IdBytes
from detokbench.vocab.reference import piece_of

_GENUINE = "\ufffd".encode()
_OFFSET_OF_UNKNOWN = 7
_NOT_AN_ID = -1


class Kind(StrEnum):
    """What an id brings into a text."""

    WORD = "word"
    SPACED = "word after a space"
    SPACE = "space"
    NEWLINE = "newline"
    BYTE_NEWLINE = "newline as a byte"
    BYTE_SPACE = "space as a byte"
    WIDE = "character beyond ASCII"
    OPEN = "beginning of a character"
    TEXT_OPEN = "text, then the beginning of a character"
    MIDDLE = "end or middle of a character"
    INVALID = "bytes that no character has"
    GENUINE = "genuine U+FFFD"
    SPECIAL = "special token"
    ADDED = "added token"
    UNKNOWN = "id beyond the vocabulary"
    BAD = "not an id"


PLAIN = frozenset({Kind.WORD, Kind.SPACED, Kind.SPACE, Kind.NEWLINE, Kind.WIDE})
"""Kinds of which ordinary text is made."""
CUT = frozenset({Kind.OPEN, Kind.TEXT_OPEN, Kind.MIDDLE, Kind.INVALID})
"""Kinds that leave characters in pieces."""


def kind_of(table: IdBytes, token_id: object) -> Kind:
    """The kind of anything that may stand where an id is expected."""
    if not isinstance(token_id, int) or not 0 <= token_id < 1 << 32:
        return Kind.BAD
    piece = piece_of(table, token_id)
    if piece is None:
        return Kind.UNKNOWN
    if token_id in table.special_ids:
        return Kind.SPECIAL
    return _kind_of_bytes(piece)


def _kind_of_bytes(piece: bytes) -> Kind:
    if piece.endswith(_GENUINE):
        return Kind.GENUINE
    if piece and piece[0] & 0xC0 == 0x80:
        return Kind.MIDDLE
    try:
        return _kind_of_text(piece.decode())
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return Kind.INVALID
        return Kind.TEXT_OPEN if error.start else Kind.OPEN


def _kind_of_text(text: str) -> Kind:
    if not text.isascii():
        return Kind.WIDE
    if text in {" ", "\n"}:
        return Kind.SPACE if text == " " else Kind.NEWLINE
    return Kind.SPACED if text.startswith(" ") else Kind.WORD


def representatives(table: IdBytes, encode: Any) -> dict[Kind, list[int]]:
    """An id of each kind that the vocabulary has, always the same ones.

    Beginnings of characters have one for each length that they announce.
    """
    found: dict[Kind, list[int]] = {}
    ascii_bytes = _second_spellings(table, encode)
    for token_id, piece in enumerate(table.pieces):
        if piece is None or token_id in ascii_bytes:
            continue
        kind = kind_of(table, token_id)
        if kind in {Kind.WORD, Kind.SPACED} and not (piece.strip().isalpha() and len(piece) > 2):
            continue
        kept = found.setdefault(kind, [])
        if len(kept) < _wanted(kind) and _brings_variety(table, kept, piece):
            kept.append(token_id)
    for token_id, kind in ascii_bytes.items():
        found[kind] = [token_id]
    found[Kind.UNKNOWN] = [len(table.pieces) + _OFFSET_OF_UNKNOWN]
    found[Kind.BAD] = [_NOT_AN_ID]
    return found


def _second_spellings(table: IdBytes, encode: Any) -> dict[int, Kind]:
    """Ids that spell a space or a newline though encoding never gives them: byte tokens."""
    kinds = {b" ": Kind.BYTE_SPACE, b"\n": Kind.BYTE_NEWLINE}
    ids: dict[bytes, list[int]] = {data: [] for data in kinds}
    for token_id, piece in enumerate(table.pieces):
        if piece in ids:
            ids[piece].append(token_id)
    usual = set(encode("a  b")) | set(encode(" "))
    return {
        token_id: kinds[data]
        for data, all_ids in ids.items()
        for token_id in all_ids
        if (len(all_ids) > 1 and token_id not in usual) or _is_byte_newline(table, data, all_ids)
    }


def _is_byte_newline(table: IdBytes, data: bytes, ids: Sequence[int]) -> bool:
    """SentencePiece has no other newline than its byte token."""
    return data == b"\n" and table.family == "byte fallback" and len(ids) == 1


def _wanted(kind: Kind) -> int:
    return 3 if kind is Kind.OPEN else 1


def _brings_variety(table: IdBytes, kept: Sequence[int], piece: bytes) -> bool:
    """Whether the first byte is of another class than those that are kept already."""
    classes = {_class_of(table.pieces[token_id] or b"") for token_id in kept}
    return _class_of(piece) not in classes


def _class_of(piece: bytes) -> int:
    """How many bytes the first byte announces; 1 for one that can only continue."""
    first = piece[0] if piece else 0
    return next((n for n, low in ((4, 0xF0), (3, 0xE0), (2, 0xC0)) if first >= low), 1)


def odd_kinds(table: IdBytes, ids: Iterable[Any]) -> list[Kind]:
    """The kinds of the ids that are not plain text, each once, in the order of this module."""
    found = {kind_of(table, token_id) for token_id in ids} - PLAIN
    return [kind for kind in Kind if kind in found]


def shape(table: IdBytes, prompt: Sequence[Any], output: Sequence[Any]) -> str:
    """The kinds of the ids that are not plain text, runs as one, ``|`` after the prompt."""
    parts: list[str] = []
    for ids in (prompt, output):
        for token_id in ids:
            kind = kind_of(table, token_id)
            if kind not in PLAIN and (not parts or parts[-1] != kind):
                parts.append(kind)
        parts.append("|")
    return " ".join(parts[:-1])
