"""Records as one HTML page that needs nothing but itself: no network, no other file."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from detokbench.records.schema import Record
from detokbench.report.charts import svg_text
from detokbench.report.html_console import Block, BlockKind, HtmlConsole, inline_html
from detokbench.report.kinds import kind_of, shown_from

_POINTS_PER_INCH = 72
_LINES = ' class="lines"'
_LEGEND = (
    'Figures are <span class="source measured">measured</span> (timed on the machine that the '
    'record names), <span class="source modelled">modelled</span> (worked out by a formula: a '
    'roofline, a sum of parts) or <span class="source given">given</span> (taken from elsewhere: '
    "an option, a publication). Times of different machines are best compared as ratios."
)


class NamedRecord(NamedTuple):
    """A record and the name of its file."""

    name: str
    record: Record


def make_page(records: Sequence[NamedRecord]) -> str:
    """The whole page: contents where there are several records, then a section for each.

    Raises DetokbenchError, exit code 2, for a record of a kind that is not known.
    """
    sections = "".join(_named_section(number, named) for number, named in enumerate(records, 1))
    title = "detokbench report"
    if len(records) == 1:
        title += f": {records[0].name}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n"
        f'<h1>detokbench report</h1>\n<p class="soft">{_LEGEND}</p>\n'
        f"{_contents(records) if len(records) > 1 else ''}{sections}</body>\n</html>\n"
    )


def _style() -> str:
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def _contents(records: Sequence[NamedRecord]) -> str:
    entries = "".join(
        f'<li><a href="#record-{number}">{escape(kind_of(record).title)}</a> '
        f'<span class="soft">{escape(name)}</span></li>\n'
        for number, (name, record) in enumerate(records, 1)
    )
    return f'<nav aria-label="Contents">\n<ol>\n{entries}</ol>\n</nav>\n'


def _named_section(number: int, named: NamedRecord) -> str:
    with shown_from(Path(named.name)):
        return _section(number, *named)


def _section(number: int, name: str, record: Record) -> str:
    console = HtmlConsole()
    kind_of(record).print_screen(record, console)
    blocks = console.blocks
    readings = _list("readings", _of_kind(blocks, "reading"))
    parts = [
        f"<h2>{escape(kind_of(record).title)}</h2>\n"
        f'<p class="soft">{escape(record.kind)} · {escape(name)}</p>\n',
        _list("warnings", _of_kind(blocks, "warning")),
        _facts(record),
        f"<h3>What it says</h3>\n{readings}" if readings else "",
        _chart(record, f"record-{number}-{name}"),
        _tables(blocks),
    ]
    return f'<section id="record-{number}">\n{"".join(parts)}</section>\n'


def _of_kind(blocks: Iterable[Block], kind: BlockKind) -> list[str]:
    return [block.html for block in blocks if block.kind == kind]


def _list(name: str, entries: Iterable[str]) -> str:
    items = "".join(f"<li>{entry}</li>\n" for entry in entries)
    return f'<ul class="{name}">\n{items}</ul>\n' if items else ""


def _facts(record: Record) -> str:
    """Where the record comes from."""
    facts = {
        "command": f"<code>{escape(shlex.join(record.command))}</code>",
        "date": escape(record.created.replace("T", " ").replace("Z", " UTC")),
        "vocabulary": escape(_vocabulary(record)),
        "machine": escape(_machine(record)),
        "versions": escape(_versions(record)),
        "rows": inline_html(_sources(record)),
    }
    entries = "".join(f"<dt>{name}</dt><dd>{html}</dd>\n" for name, html in facts.items() if html)
    return f"<dl>\n{entries}</dl>\n"


def _vocabulary(record: Record) -> str:
    vocabulary = record.vocabulary
    if "ids" not in vocabulary:  # of none, or of several
        return str(vocabulary.get("name", ""))
    return (
        f"{vocabulary['name']}: {vocabulary['ids']:,} ids, {vocabulary['tokenizer']} "
        f"({vocabulary['source']})"
    )


def _machine(record: Record) -> str:
    machine = record.machine
    parts = [
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs",
        *(str(machine[key]) for key in ("system", "python") if machine.get(key)),
    ]
    return " · ".join(parts)


def _versions(record: Record) -> str:
    packages = {"detokbench": record.detokbench, **record.packages}
    return " · ".join(f"{name} {version}" for name, version in packages.items())


def _sources(record: Record) -> str:
    """How many figures are of each source."""
    counts = Counter(row.source for row in record.rows)
    return ", ".join(f"{number} {source}" for source, number in counts.items())


def _chart(record: Record, names: str) -> str:
    figure = kind_of(record).make_figure(record)
    if figure is None:
        return ""
    _, start, drawing = svg_text(figure, names).partition("<svg ")
    label = escape(f"Chart: {kind_of(record).title}", quote=True)
    # Narrower than a pixel a point its text cannot be read: it is scrolled rather.
    least_px = round(figure.get_figwidth() * _POINTS_PER_INCH)
    return (
        '<h3>Chart</h3>\n<figure tabindex="0">\n'
        f'{start}role="img" aria-label="{label}" style="min-width: {least_px}px" {drawing}'
        "</figure>\n"
    )


def _tables(blocks: Sequence[Block]) -> str:
    """The rest of the screen in its own order."""
    wanted = [block for block in blocks if block.kind in {"text", "table"}]
    body = "".join(
        f'<div class="wide" tabindex="0">\n{block.html}\n</div>\n'
        if block.kind == "table"
        else f"<p{_LINES if chr(10) in block.html else ''}>{block.html}</p>\n"
        for block in wanted
    )
    return f"<h3>Tables</h3>\n{body}"
