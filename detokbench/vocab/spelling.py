"""In how many ids a text can be spelt, and which ids run past its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from detokbench.vocab.id_bytes import IdBytes

Pieces = Mapping[bytes, int]
"""Each byte string that an id writes → the lowest such id."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """The spellings of a text in fewest and in most ids, one of each; None where there is none."""

    fewest: list[int] | None
    most: list[int] | None


@dataclass(frozen=True, slots=True)
class Edges:
    """Ids that write bytes of a text together with bytes around it.

    ``starts`` are the lengths of beginnings of the text that such an id ends with, ``ends`` those
    of its ends that such an id begins with.
    """

    containing: list[int]
    before: list[int]
    after: list[int]
    starts: frozenset[int]
    ends: frozenset[int]


def ordinary_pieces(table: IdBytes) -> Pieces:
    """The byte strings that ids write which are not special; ids that write nothing are left out.

    An id that writes nothing could stand anywhere in a spelling, any number of times.
    """
    pieces: dict[bytes, int] = {}
    for token_id, piece in enumerate(table.pieces):
        if piece and token_id not in table.special_ids:
            pieces.setdefault(piece, token_id)
    return pieces


def spellings(text: bytes, pieces: Pieces) -> Spellings:
    """The shortest and the longest list of ids whose bytes are ``text``.

    Dynamic programming over the positions of ``text``: the best list that ends at each.
    """
    lengths = sorted({len(piece) for piece in pieces if len(piece) <= len(text)})
    return Spellings(
        fewest=_best(text, pieces, lengths, lambda new, old: new < old),
        most=_best(text, pieces, lengths, lambda new, old: new > old),
    )


def _best(
    text: bytes, pieces: Pieces, lengths: list[int], is_better: Callable[[int, int], bool]
) -> list[int] | None:
    counts: list[int | None] = [0, *(None for _ in text)]
    last_length = [0] * (len(text) + 1)
    for end in range(1, len(text) + 1):
        for length in lengths:
            before = counts[end - length] if length <= end else None
            if before is None or text[end - length : end] not in pieces:
                continue
            best = counts[end]
            if best is None or is_better(before + 1, best):
                counts[end], last_length[end] = before + 1, length
    if counts[-1] is None:
        return None
    ids = []
    end = len(text)
    while end:
        ids.append(pieces[text[end - last_length[end] : end]])
        end -= last_length[end]
    return ids[::-1]


def edges(text: bytes, pieces: Iterable[tuple[bytes, int]]) -> Edges:
    """Look through all ids for those that reach over an edge of ``text``, which is not empty."""
    containing, before, after = [], [], []
    starts: set[int] = set()
    ends: set[int] = set()
    first, last = text[:1], text[-1:]
    for piece, token_id in pieces:
        if len(piece) > len(text) and text in piece:
            containing.append(token_id)
        if first in piece[1:] and (found := _start_lengths(text, piece)):
            before.append(token_id)
            starts.update(found)
        if last in piece[:-1] and (found := _end_lengths(text, piece)):
            after.append(token_id)
            ends.update(found)
    return Edges(containing, before, after, frozenset(starts), frozenset(ends))


def _start_lengths(text: bytes, piece: bytes) -> list[int]:
    """Lengths of beginnings of ``text``, not all of it, that ``piece`` ends with after more."""
    most = min(len(text), len(piece)) - 1
    return [n for n in range(1, most + 1) if piece[-n:] == text[:n]]


def _end_lengths(text: bytes, piece: bytes) -> list[int]:
    """Lengths of ends of ``text``, not all of it, that ``piece`` begins with before more."""
    most = min(len(text), len(piece)) - 1
    return [n for n in range(1, most + 1) if piece[:n] == text[-n:]]


def can_appear(text: bytes, pieces: Pieces, found: Edges) -> bool:
    """Whether ids can write ``text`` at all, bytes around it allowed."""
    if found.containing:
        return True
    lengths = sorted({len(piece) for piece in pieces if len(piece) <= len(text)})
    reached = {0, *found.starts}
    for end in range(1, len(text) + 1):
        if any(
            end - length in reached and text[end - length : end] in pieces for length in lengths
        ):
            reached.add(end)
    return len(text) in reached or any(len(text) - length in reached for length in found.ends)
