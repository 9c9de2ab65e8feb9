"""How ids, bytes and text are written in a trace: on one line, nothing in them left to guess."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

NO_ID = "–"
_MOST_IDS = 3
_LONG_TEXT = 160
_AROUND = 60


def shown_text(text: str) -> str:
    """``text`` as Python writes it, and a mark that would join the quote before it by number."""
    if not text:
        return "''"
    literal = repr(text)
    if unicodedata.category(literal[1])[0] == "M":
        literal = f"{literal[0]}\\u{ord(literal[1]):04x}{literal[2:]}"
    return literal


def excerpt(text: str, position: int | None = None) -> str:
    """``shown_text``; of a long text the end, or what stands around ``position``."""
    if len(text) <= _LONG_TEXT:
        return shown_text(text)
    middle = len(text) if position is None else position
    start = max(0, min(middle - _AROUND, len(text) - 2 * _AROUND))
    part = text[start : start + 2 * _AROUND]
    before = "… " if start else ""
    after = " …" if start + len(part) < len(text) else ""
    return f"{before}{shown_text(part)}{after}  ({len(text):,} characters)"


def shown_ids(ids: Sequence[Any]) -> str:
    """Ids with commas: of many the first, the last and the number."""
    if len(ids) <= _MOST_IDS:
        return ", ".join(map(repr, ids))
    return f"{ids[0]!r} … {ids[-1]!r} ({len(ids)})"


def listed_ids(ids: Sequence[Any]) -> str:
    """Ids, one a line: of many the first, the number of those left out, and the last."""
    if len(ids) <= _MOST_IDS:
        return "\n".join(map(repr, ids))
    return f"{ids[0]!r}\n… {len(ids) - 2}\n{ids[-1]!r}"


def shown_pieces(pieces: Sequence[bytes | None] | None) -> str:
    """The bytes of each id, one a line as ``listed_ids`` has them.

    A dash stands for what is no id, a question mark for bytes that are unknown.
    """
    if pieces is None:
        return "?"
    shown = [NO_ID if piece is None else repr(piece) for piece in pieces]
    if len(shown) <= _MOST_IDS:
        return "\n".join(shown)
    return f"{shown[0]}\n…\n{shown[-1]}"


def shown_held(held: str | bytes | None) -> str:
    """What a path holds; nothing for nothing."""
    if not held:
        return ""
    if isinstance(held, bytes):
        return repr(held)
    return shown_text(held if len(held) <= _AROUND else "…" + held[-_AROUND:])
