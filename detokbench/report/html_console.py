"""A screen caught as HTML, so that a page says what the terminal says, from the same code."""

from __future__ import annotations

import io
import re
from html import escape
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

PAGE_WIDTH = 160
"""In characters: wide enough for every column of every screen; the page scrolls where it is not."""

BlockKind = Literal["text", "table", "reading", "warning"]
_MARKS: dict[str, BlockKind] = {"• ": "reading", "! ": "warning"}
"""How the lines of every screen begin that say what the record means, or what is wrong with it."""

_SOURCES = {
    "measured": "measured",
    "modelled": "modelled",
    "roofline": "modelled",
    "memory-only": "modelled",
    "derated": "modelled",
    "given": "given",
    "published": "given",
}
"""Words that say where a figure comes from, and which of the three it is."""
_SOURCE_WORDS = re.compile(rf"\b({'|'.join(_SOURCES)})\b")


class Block(NamedTuple):
    """One thing that a screen printed."""

    kind: BlockKind
    html: str


class HtmlConsole(Console):
    """A console that keeps what is printed on it as blocks of HTML and shows nothing."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=PAGE_WIDTH)
        self.blocks: list[Block] = []

    def print(self, *objects: Any, **options: Any) -> None:
        has_markup = options.get("markup", True) is not False
        for printed in objects:
            if isinstance(printed, Table):
                self.blocks.append(Block("table", table_html(printed)))
            else:
                self.blocks.append(_text_block(_text(printed, has_markup)))


def _text(printed: str | Text, has_markup: bool) -> Text:
    if isinstance(printed, Text):
        return printed
    return Text.from_markup(printed) if has_markup else Text(printed)


def _text_block(text: Text) -> Block:
    kind = _MARKS.get(text.plain[:2])
    return Block("text", inline_html(text)) if kind is None else Block(kind, inline_html(text[2:]))


def inline_html(line: Text | str) -> str:
    """A line of text: what is bold stays bold, and the sources of figures are marked."""
    text = _text(line, has_markup=False)
    cuts = sorted({0, len(text), *(cut for span in text.spans for cut in (span.start, span.end))})
    return "".join(
        _piece_html(text.plain[start:end], bold=_is_bold(text, start))
        for start, end in pairwise(cuts)
    )


def _is_bold(text: Text, at: int) -> bool:
    return any("bold" in str(span.style) for span in text.spans if span.start <= at < span.end)


def _piece_html(plain: str, bold: bool) -> str:
    html = _SOURCE_WORDS.sub(_marked_source, escape(plain))
    return f"<strong>{html}</strong>" if bold else html


def _marked_source(match: re.Match[str]) -> str:
    word = match[1]
    return f'<span class="source {_SOURCES[word]}">{word}</span>'


def table_html(table: Table) -> str:
    """A table as ``<table>``: headers of columns and rows, sections, numbers to the right."""
    caption = f"<caption>{_cell_html(table.title)}</caption>" if table.title else ""
    head = "".join(
        f'<th scope="col"{_side(column)}>{_cell_html(column.header)}</th>'
        for column in table.columns
    )
    rows = zip(*(column.cells for column in table.columns), strict=True)
    bodies: list[list[str]] = [[]]
    for cells, row in zip(rows, table.rows, strict=True):
        bodies[-1].append(_row_html(table.columns, cells))
        if row.end_section:
            bodies.append([])
    body = "".join(f"<tbody>\n{''.join(lines)}</tbody>\n" for lines in bodies if lines)
    return f"<table>{caption}\n<thead><tr>{head}</tr></thead>\n{body}</table>"


def _row_html(columns: list[Column], cells: tuple[Any, ...]) -> str:
    first, *rest = (
        (column, _side(column), _cell_html(cell))
        for column, cell in zip(columns, cells, strict=True)
    )
    data = "".join(f"<td{side}>{html}</td>" for _, side, html in rest)
    return f'<tr><th scope="row"{first[1]}>{first[2]}</th>{data}</tr>\n'


def _side(column: Column) -> str:
    return ' class="right"' if column.justify == "right" else ""


def _cell_html(cell: Any) -> str:
    """A cell; line breaks of a header stay, but for those that only push it down."""
    text = _text(cell, has_markup=True)
    lines = [inline_html(line) for line in text.split("\n") if line.plain.strip()]
    return "<br>".join(lines)
