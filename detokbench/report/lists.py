"""Plain tables for the listing commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    right_aligned: AbstractSet[str] = frozenset(),
) -> None:
    """Print a table on standard output, cells folded to the width of the terminal."""
    from rich import box
    from rich.table import Table

    from detokbench.report.console import make_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        table.add_column(
            header, justify="right" if header in right_aligned else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*row)
    make_console().print(table)
