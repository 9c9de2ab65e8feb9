"""The steps of a trace as a table that fits its console and leaves nothing out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from detokbench.report.trace_cells import (
    listed_ids,
    shown_held,
    shown_ids,
    shown_pieces,
    shown_text,
)
from detokbench.trace.compare import END
from detokbench.trace.steps import Trace, TraceStep

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 100
_NARROW = 72
_GAP = 2
_COUNTED = {
    "bad_ids": "id refused",
    "rebuilt_streams": "stream rebuilt",
    "states_lost": "state lost",
}


class _Column(NamedTuple):
    header: str
    cell: Callable[[TraceStep], str]
    is_number: bool = False
    least_width: int | None = None
    """Not folded below this, where there is room; None: not at all."""


def steps_table(trace: Trace, width: int) -> Table:
    """One row a step; ids and held texts from 100 columns on, no offsets under 72."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = list(_columns(trace, width))
    widths = _widths(columns, trace.steps, width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column, column_width in zip(columns, widths, strict=True):
        table.add_column(
            column.header,
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            overflow="fold",
            width=column_width,
        )
    for step in trace.steps:
        table.add_row(*(Text(column.cell(step)) for column in columns))
    return table


def _widths(columns: Sequence[_Column], steps: Sequence[TraceStep], width: int) -> list[int | None]:
    """A width for each column; None for all where even the least do not fit together.

    Set here since a column that the table makes narrower than its least width is cut, not folded.
    What is left over goes to those that need it, from the left.
    """
    from rich.cells import cell_len

    widest = [
        max(
            cell_len(line)
            for cell in (column.header, *map(column.cell, steps))
            for line in (cell.splitlines() or [""])
        )
        for column in columns
    ]
    found = [
        full if column.least_width is None else min(full, column.least_width)
        for full, column in zip(widest, columns, strict=True)
    ]
    spare = width - _GAP * (len(columns) + 1) - sum(found)
    if spare < 0:
        return [None] * len(columns)
    for position, full in enumerate(widest):
        more = min(full - found[position], spare)
        found[position] += more
        spare -= more
    return [*found]


def _columns(trace: Trace, width: int) -> Iterator[_Column]:
    steps, is_wide, has_room = trace.steps, width >= _WIDE, width >= _NARROW
    yield _Column("step", lambda step: step.label, is_number=True)
    yield _Column("id", lambda step: listed_ids(step.ids), is_number=True)
    yield _Column("bytes", lambda step: shown_pieces(step.pieces), least_width=14)
    if has_room and any(step.window is not None for step in steps):
        mark = "*" if is_modelled(trace) else ""
        yield _Column(f"window{mark}", _window_ids if is_wide else _window_size, not is_wide, 12)
    names = dict.fromkeys(name for step in steps for name in _offsets(step))
    for name in names if has_room else ():
        yield _Column(_header(name, trace, is_wide), partial(_offset, name=name), is_number=True)
    yield _Column("state", lambda step: step.outcome)
    if is_wide and any(step.after is not None and step.after.held for step in steps):
        yield _Column("held", _held, least_width=12)
    if trace.stream.has_stops:
        yield _Column("for\nstops", _stop_held if is_wide else _stop_held_size, not is_wide, 12)
    yield _Column("delta", _delta, least_width=20)


def _window_ids(step: TraceStep) -> str:
    """The ids that are decoded again, a bar, and the number of new ones."""
    if step.window is None:
        return ""
    new = f"+{len(step.handed)}" if step.handed else ""
    return f"{shown_ids(step.window)} {new}".strip()


def _window_size(step: TraceStep) -> str:
    if step.window is None:
        return ""
    size = len(step.window)
    return f"{size}+{len(step.handed)}" if step.handed else f"{size}"


def _offsets(step: TraceStep) -> Mapping[str, int]:
    view = step.after or step.before
    return {} if view is None else view.offsets


def _header(name: str, trace: Trace, is_wide: bool) -> str:
    """An engine's own name for an offset: over two lines, or its first word."""
    mark = "*" if is_modelled(trace) else ""
    return (name.replace("_", "\n", 1) if is_wide else name.partition("_")[0]) + mark


def _offset(step: TraceStep, name: str) -> str:
    before = None if step.before is None else step.before.offsets.get(name)
    after = None if step.after is None else step.after.offsets.get(name)
    if before is None or after is None or before == after:
        known = before if after is None else after
        return "" if known is None else str(known)
    return f"{before}→{after}"


def _held(step: TraceStep) -> str:
    return "" if step.after is None else shown_held(step.after.held)


def _stop_held(step: TraceStep) -> str:
    return shown_held(step.stop_held)


def _stop_held_size(step: TraceStep) -> str:
    return f"{len(step.stop_held)}" if step.stop_held else ""


def _delta(step: TraceStep) -> str:
    if step.error:
        return step.error
    notes = [
        _COUNTED.get(name, name) + (f" ×{number}" if number > 1 else "")
        for name, number in step.counted.items()
    ]
    shown = shown_text(step.delta) if step.delta or step.label == END else ""
    return f"{shown} ({', '.join(notes)})".strip() if notes else shown


def is_modelled(trace: Trace) -> bool:
    return any(step.before is not None and step.before.is_modelled for step in trace.steps)
