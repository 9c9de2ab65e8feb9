"""The matrix of a ``verify`` record on a screen: paths × laws, over all vocabularies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.verify import Verdict, VerifyDetails
from detokbench.report.verify_legend import legend
from detokbench.report.verify_text import filled, table_width
from detokbench.report.verify_verdicts import Worst, mark, worst

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_STYLES: dict[Verdict, str] = {"pass": "green", "differs": "red", "error": "yellow", "n/a": "dim"}
_LONGEST_HEAD = 6
_FORMS = ((True, True, 2), (False, True, 2), (False, True, 1), (False, False, 2), (False, False, 1))
"""Paths down the side or across, marks with figures or without, columns between marks."""


def print_matrix(details: VerifyDetails, console: Console) -> None:
    """Paths down the side where that fits, else across the top, else a line for each path."""
    if not details.cells:
        console.print("No path was judged by any law.", highlight=False, markup=False)
        return
    tables = (_table(details, *form) for form in _FORMS)
    table = next((table for table in tables if table_width(table) <= console.width), None)
    if table is not None:
        console.print(table)
    else:
        for path in details.paths:
            line = _path_line(details, path, console.width)
            console.print(line, highlight=False, markup=False)
    for line in legend(details, console.width):
        console.print(line, highlight=False, markup=False)


def _table(details: VerifyDetails, paths_down: bool, with_figures: bool, gap: int) -> Table:
    laws = [law.name for law in details.laws]
    paths = [_name(path, details) for path in details.paths]
    marks = [[worst(details, path, law) for law in laws] for path in details.paths]
    if paths_down:
        heads, names, lines = ["path", *laws], paths, marks
    else:
        across = [[line[number] for line in marks] for number in range(len(laws))]
        heads, names, lines = ["law", *paths], laws, across
    table = _empty_table([head(name) for name in heads], gap)
    for name, line in zip(names, lines, strict=True):
        table.add_row(name, *(_styled(found, with_figures) for found in line))
    return table


def _empty_table(heads: list[str], gap: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    tallest = max(head.count("\n") for head in heads)
    for head in heads:
        pushed_down = "\n" * (tallest - head.count("\n")) + head
        table.add_column(Text(pushed_down), no_wrap=True)
    return table


def _styled(found: Worst, with_figures: bool) -> Text:
    from rich.text import Text

    return Text(mark(found, with_figures), _STYLES[found.verdict])


def _name(path: str, details: VerifyDetails) -> str:
    return f"{path} *" if path in details.required else path


def head(name: str) -> str:
    """A name in two lines of a narrow column, broken at a hyphen."""
    if len(name) <= _LONGEST_HEAD:
        return name
    if name == "replacement":
        return "replace-\nment"
    return name.replace("-", "-\n", 1)


def _path_line(details: VerifyDetails, path: str, width: int) -> str:
    """``slow: ✗ 1/3 bytes, ✗ linear work; ✓ 9; – 1``."""
    found = {law.name: worst(details, path, law.name) for law in details.laws}
    parts = [f"{mark(entry, True)} {law}" for law, entry in found.items() if entry.is_broken]
    parts = [f"{part}," for part in parts[:-1]] + [f"{part};" for part in parts[-1:]]
    kept = sum(entry.verdict == "pass" for entry in found.values())
    skipped = sum(entry.verdict == "n/a" for entry in found.values())
    parts.append(f"✓ {kept};" if skipped else f"✓ {kept}")
    parts += [f"– {skipped}"] if skipped else []
    return filled([f"{_name(path, details)}:", *parts], width, rest="  ")
