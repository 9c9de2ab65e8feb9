"""Text of any kind made safe for a screen: what is invisible is named, what is long is cut.

A quoted text holds no character that changes the width or the order of what stands beside it, so
that columns and folds come out as counted.
"""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

CUT = "…"
_FIRST_IDS, _LAST_IDS = 16, 4
_FIRST_PIECES, _LAST_PIECES = 14, 4
_NO_LETTERS = "\n\r\t\\'\""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def quoted(text: str) -> str:
    """A text in quotes, as Python writes it, but for more characters that cannot be seen alone.

    Escaped are also variation selectors, and combining marks without a letter in front of them.
    """
    return _in_quotes(text, _visible(text))


def excerpt(text: str, at: int, most: int) -> str:
    """A quoted text cut around the character ``at``, to about ``most`` columns; … marks a cut."""
    from rich.cells import cell_len

    whole = quoted(text)
    if cell_len(whole) <= most:
        return whole
    shown = _visible(text)
    costs = [cell_len(piece) for piece in shown]
    left = most - len("……''")
    start = end = min(at, max(0, len(text) - 1))
    before = left // 3
    while start > 0 and costs[start - 1] <= before:
        start -= 1
        before -= costs[start]
        left -= costs[start]
    while end < len(text) and costs[end] <= left:
        left -= costs[end]
        end += 1
    while start > 0 and costs[start - 1] <= left:
        start -= 1
        left -= costs[start]
    part = text[start:end]
    cut_off = CUT if end < len(text) else ""
    return f"{CUT if start else ''}{_in_quotes(part, _visible(part))}{cut_off}"


def plain(text: str, most: int | None = None) -> str:
    """Words, in which quotes and escapes may be already, cut at ``most`` columns: no line breaks,
    and nothing else that cannot be seen.
    """
    from rich.cells import cell_len, chop_cells

    words = "".join(_visible(text)).replace("\\\\", "\\")
    if most is None or cell_len(words) <= most:
        return words
    return f"{chop_cells(words, most - 1)[0]}{CUT}"


def first_difference(one: str, other: str) -> int:
    """The number of characters that two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next(
        (place for place, (left, right) in enumerate(pairs) if left != right),
        min(len(one), len(other)),
    )


def _in_quotes(text: str, shown: Sequence[str]) -> str:
    if "'" in text and '"' not in text:
        return f'"{"".join(shown)}"'
    return "'{}'".format("".join(shown).replace("'", "\\'"))


def _visible(text: str) -> list[str]:
    """What stands on the screen for each character."""
    shown: list[str] = []
    has_letter = False
    for character in text:
        is_mark = unicodedata.category(character).startswith("M")
        hidden = not character.isprintable() or _is_selector(character)
        if character in _ESCAPES:
            shown.append(_ESCAPES[character])
        elif hidden or (is_mark and not has_letter):
            shown.append(_code(character))
        else:
            shown.append(character)
        has_letter = is_mark and has_letter if is_mark or hidden else character not in _NO_LETTERS
    return shown


def _is_selector(character: str) -> bool:
    """Whether it only says how the character in front of it is drawn, which may alter its width."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _code(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def id_list(ids: Sequence[Any]) -> list[str]:
    """Ids as Python writes them, and what is no id too, one after the other, to be filled."""
    shown = [quoted(entry) if isinstance(entry, str) else str(entry) for entry in ids]
    shown = _ends(shown, _FIRST_IDS, _LAST_IDS)
    listed = [f"{text}," for text in shown[:-1]] + shown[-1:]
    return f"[{' '.join(listed)}]".split(" ")


def piece_list(pieces: Sequence[str]) -> list[str]:
    """The bytes of ids, to be filled: as text where they are text, else in hexadecimal."""
    return _ends([_piece(piece) for piece in pieces], _FIRST_PIECES, _LAST_PIECES)


def _piece(piece: str) -> str:
    """One id's bytes, from Python's notation: ``b' ok'`` as ``' ok'``, ``b'\\xf0'`` as ``f0``."""
    try:
        data = ast.literal_eval(piece)
    except (ValueError, SyntaxError):
        return f"({piece})"
    if not isinstance(data, bytes):
        return f"({piece})"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex()
    return quoted(text)


def _ends(entries: list[str], first: int, last: int) -> list[str]:
    if len(entries) <= first + last + 1:
        return entries
    left_out = len(entries) - first - last
    return [*entries[:first], f"{CUT}{left_out:,} more{CUT}", *entries[-last:]]


def table_width(table: Table) -> int:
    """Columns that a table needs when nothing in it is folded."""
    from rich.console import Console
    from rich.measure import Measurement

    room = Console(width=10_000)
    return Measurement.get(room, room.options, table).maximum


def filled(fragments: Sequence[str], width: int, first: str = "", rest: str = "") -> str:
    """Fragments set side by side in lines of at most ``width`` columns, none of them broken.

    ``first`` begins the first line and ``rest`` all others. Only a fragment that is wider than a
    line is broken, wherever the line ends.
    """
    from rich.cells import cell_len, chop_cells

    room = max(1, width - max(cell_len(first), cell_len(rest)))
    lines: list[str] = []
    line, is_empty = first, True
    for fragment in fragments:
        for number, part in enumerate(chop_cells(fragment, room) or [""]):
            gap = "" if is_empty else " "
            if number or (not is_empty and cell_len(line + gap + part) > width):
                lines.append(line)
                line, gap = rest, ""
            line += gap + part
            is_empty = False
    return "\n".join([*lines, line])
