"""Work a step over the length of the output, from a ``verify`` record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.verify import Growth, VerifyDetails
from detokbench.report.units import significant
from detokbench.report.verify_text import plain, table_width
from detokbench.report.verify_verdicts import GROWTH

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_TIMES = "µs a step\nfirst → last"


def worst_growth(details: VerifyDetails) -> list[Growth]:
    """For each path the stream on which its work grows the most, in the order of tables."""
    worst: dict[str, Growth] = {}
    for growth in sorted(details.growth, key=_badness, reverse=True):
        worst.setdefault(growth.path, growth)  # of equals the first
    return [worst[path] for path in details.paths if path in worst]


def _badness(growth: Growth) -> tuple[int, float]:
    first, last = growth.ids_a_step[0], growth.ids_a_step[-1]
    return GROWTH.index(growth.growth), last / first if first else last


def print_growth(details: VerifyDetails, console: Console) -> None:
    """Paths whose work grows, by their worst stream; the others in one line."""
    worst = worst_growth(details)
    growing = [growth for growth in worst if growth.growth != "flat"]
    flat = [growth for growth in worst if growth.growth == "flat"]
    if growing:
        console.print()
        table = _table(growing, with_times=True)
        if table_width(table) > console.width:
            table = _table(growing, with_times=False)
        console.print(table)
        note = "Judged by ids."
        if any(column.header == _TIMES for column in table.columns):
            note += " µs: measured once, an illustration."
        if any(growth.source == "modelled" for growth in growing):
            note += " ~ modelled: the path hides its window."
        console.print(note, highlight=False, markup=False)
    if flat:
        listed = ", ".join(_flat(growth) for growth in flat)
        console.print(f"Work a step is flat: {listed}.", highlight=False, markup=False)


def _table(growing: list[Growth], with_times: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    lengths = {(growth.lengths[0], growth.lengths[-1]) for growth in growing}
    span = lengths.pop() if len(lengths) == 1 else None
    places = {growth.vocab for growth in growing}
    at = f"at {span[0]:,} → {span[1]:,}" if span else "first → last"
    table.add_column("work that grows:\npath", no_wrap=True)
    where = f" ({growing[0].vocab})" if len(places) == 1 else ""
    table.add_column(f"\nstream{where}", overflow="fold")
    table.add_column(f"ids a step\n{at}", justify="right")
    table.add_column("\ngrowth")
    if with_times:
        table.add_column(_TIMES, justify="right")
    for growth in growing:
        cells = [
            growth.path,
            plain(growth.stream) if len(places) == 1 else plain(f"{growth.stream}, {growth.vocab}"),
            _ids(growth, with_lengths=span is None),
            growth.growth,
            f"{significant(growth.first_us, 2)} → {significant(growth.last_us, 2)}",
        ]
        table.add_row(*(Text(cell) for cell in cells[: len(table.columns)]))
    return table


def _ids(growth: Growth, with_lengths: bool) -> str:
    first, last = (_count(growth.ids_a_step[end]) for end in (0, -1))
    if with_lengths:
        first += f" at {growth.lengths[0]:,}"
        last += f" at {growth.lengths[-1]:,}"
    return f"{'~ ' if growth.source == 'modelled' else ''}{first} → {last}"


def _flat(growth: Growth) -> str:
    modelled = "~ " if growth.source == "modelled" else ""
    ids = _count(growth.ids_a_step[-1])
    return f"{growth.path} ({modelled}{ids} id{'' if ids == '1' else 's'})"


def _count(ids: float) -> str:
    """A mean number of ids: whole where it is large or whole."""
    return f"{ids:,.0f}" if ids >= 10 or ids == round(ids) else f"{ids:.1f}"
