"""What the ids of a vocabulary stand for: whole text or not, shared text, gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from detokbench.vocab.id_bytes import UnsupportedFamilyError, is_whole_text
from detokbench.vocab.vocabulary import Vocabulary

_MOST_EXAMPLES = 8
_GENUINE = "\ufffd".encode()
_Key = TypeVar("_Key", str, bytes)


class IdSet(msgspec.Struct, frozen=True, kw_only=True):
    """How many ids have a property, and the first few of them."""

    count: int
    examples: tuple[int, ...]


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Texts that several ids have, each id decoded alone with U+FFFD for what is not UTF-8."""

    texts: int
    ids: int
    largest: int
    """Ids of the text that the most ids have; 0 where no text is shared."""
    largest_text: str
    byte_strings: int | None
    """Shared even as bytes; None without a table of bytes."""


class IdFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of all ids. ``from_bytes`` is False where each id was decoded alone instead."""

    from_bytes: bool
    length: int
    """``len(tokenizer)``: a number of tokens, so that ids may lie above it where there are gaps."""
    highest: int
    not_text: IdSet
    genuine: IdSet | None
    """Ids that end in a complete U+FFFD of their own; None without a table of bytes."""
    empty: IdSet
    shared: Shared
    gaps: IdSet
    beyond_length: IdSet
    """Ids with a token that are not below ``length``."""
    padding_64: int
    padding_128: int
    """Ids without a token, were the model's embedding padded to that multiple."""


def id_facts(vocabulary: Vocabulary) -> IdFacts:
    """Look at every id of ``vocabulary``, by its bytes or else by decoding it alone."""
    texts, pieces = _texts(vocabulary)
    length, highest = vocabulary.size, max(texts, default=-1)
    if pieces is None:
        not_text = id_set(i for i, text in texts.items() if "\ufffd" in text)
    else:
        not_text = id_set(i for i, piece in pieces.items() if not is_whole_text(piece))
    return IdFacts(
        from_bytes=pieces is not None,
        length=length,
        highest=highest,
        not_text=not_text,
        genuine=None if pieces is None else _genuine(pieces),
        empty=id_set(i for i, text in texts.items() if not text),
        shared=_shared(texts, pieces),
        gaps=id_set(i for i in range(highest + 1) if i not in texts),
        beyond_length=id_set(i for i in sorted(texts) if i >= length),
        padding_64=-(highest + 1) % 64,
        padding_128=-(highest + 1) % 128,
    )


def id_set(ids: Iterable[int]) -> IdSet:
    """Count ``ids`` and keep the first few."""
    found = list(ids)
    return IdSet(count=len(found), examples=tuple(found[:_MOST_EXAMPLES]))


def _texts(vocabulary: Vocabulary) -> tuple[dict[int, str], dict[int, bytes] | None]:
    """Text of each id alone, and its bytes where the family has a table of them."""
    try:
        table = vocabulary.id_bytes
    except UnsupportedFamilyError:
        return _decoded_alone(vocabulary), None
    pieces = {i: piece for i, piece in enumerate(table.pieces) if piece is not None}
    return {i: piece.decode("utf-8", "replace") for i, piece in pieces.items()}, pieces


def _decoded_alone(vocabulary: Vocabulary) -> dict[int, str]:
    ids = sorted(set(vocabulary.tokenizer.get_vocab().values()))
    if vocabulary.rust is not None:
        rows = [[i] for i in ids]
        texts = vocabulary.rust.decode_batch(rows, skip_special_tokens=False)
        return dict(zip(ids, texts, strict=True))
    return {i: vocabulary.decode([i], skip_special_tokens=False) for i in ids}


def _genuine(pieces: Mapping[int, bytes]) -> IdSet:
    return id_set(i for i, piece in pieces.items() if piece.endswith(_GENUINE))


def _shared(texts: Mapping[int, str], pieces: Mapping[int, bytes] | None) -> Shared:
    groups = _ids_by(texts)
    largest = max(groups, key=lambda text: len(groups[text]), default="")
    return Shared(
        texts=len(groups),
        ids=sum(map(len, groups.values())),
        largest=len(groups.get(largest, [])),
        largest_text=largest,
        byte_strings=None if pieces is None else len(_ids_by(pieces)),
    )


def _ids_by(keys: Mapping[int, _Key]) -> dict[_Key, list[int]]:
    """The ids of each key that several of them have."""
    groups: dict[_Key, list[int]] = defaultdict(list)
    for token_id, key in keys.items():
        groups[key].append(token_id)
    return {key: ids for key, ids in groups.items() if len(ids) > 1}
