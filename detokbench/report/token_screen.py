"""A list of single tokens as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.report.trace_cells import NO_ID, shown_text
from detokbench.trace.tokens import ListedToken, TokenList

if TYPE_CHECKING:
    from rich.console import Console


def print_tokens(listed: TokenList, console: Console) -> None:
    """Each id with its bytes, its text alone and its text in context."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("id", justify="right", no_wrap=True)
    for header in ("bytes", "decoded alone", "text in context"):
        table.add_column(header, overflow="fold")
    for token in listed.tokens:
        table.add_row(*(Text(cell) for cell in _cells(token)))
    console.print(table)
    for line in _notes(listed):
        console.print(line, markup=False, highlight=False)


def _cells(token: ListedToken) -> list[str]:
    data = token.text.data
    return [
        str(token.text.token_id),
        NO_ID if data is None else repr(data),
        token.error if token.alone is None else shown_text(token.alone),
        shown_text(token.text.text),
    ]


def _notes(listed: TokenList) -> list[str]:
    if listed.context is None:
        place = "inside a text, on a whole character"
    else:
        place = f"after {len(listed.context)} ids of prompt" if listed.context else "at the start"
    notes = [
        f"{listed.vocabulary}, {place}. A character's text stands with the id that completes it.",
    ]
    if any(token.text.data is None for token in listed.tokens):
        notes.append(f"{NO_ID}: no id of this vocabulary; it has no bytes, and '' for its text.")
    return notes
