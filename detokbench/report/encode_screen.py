"""One screen of an ``encode`` record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from detokbench.records.encode import ArrivalCell, StallCell
from detokbench.records.schema import Record, Row
from detokbench.report.encode_figures import EncodeFigures
from detokbench.report.encode_notes import (
    arrival_note,
    encode_warnings,
    spread_percent,
    stall_note,
)
from detokbench.report.encode_reading import read_encode
from detokbench.report.units import count, digits_for, milliseconds, rate, significant, times

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 118
_BROAD = 104
_MEDIUM = 86
_NARROW = 72


class _Column(NamedTuple):
    header: str
    width_needed: int = 0
    """Narrowest terminal that still gets this column."""


def print_encode(record: Record, console: Console) -> None:
    """Heading, costs, arrivals, admissions, and what it means."""
    figures = EncodeFigures(record)
    for line in _heading(figures):
        console.print(line, highlight=False)
    if figures.calls:
        console.print(_cost_table(figures, console.width))
    if figures.batched():
        console.print(_batch_table(figures, console.width))
    if figures.details.arrivals:
        console.print(_arrival_table(figures, console.width))
        console.print(arrival_note(figures), highlight=False)
    if figures.details.stalls:
        console.print(_stall_table(figures, console.width))
        console.print(stall_note(figures), highlight=False)
    for entry in record.not_applicable:
        console.print(f"n/a {entry.path}: {entry.why}.", highlight=False)
    for sentence in read_encode(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in encode_warnings(figures):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(figures: EncodeFigures) -> list[str]:
    record, details = figures.record, figures.details
    vocabulary, machine, settings = record.vocabulary, record.machine, record.settings
    versions = [f"{name} {record.packages[name]}" for name in ("tokenizers", "transformers")]
    pinned = "pinned" if settings["pinned"] else "not pinned"
    collector = "on" if settings["gc"] else "off"
    lists = f" · a list of prompts takes {_threads(details.threads)}" if figures.list_calls else ""
    return [
        f"[bold]encode[/] · {vocabulary['name']}: {vocabulary['ids']:,} ids, "
        f"{vocabulary['tokenizer']} ({vocabulary['source']}) · {' · '.join(versions)}",
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs · {machine['python']} · "
        f"{settings['processes_finished']} processes, {pinned}, GC {collector} · measured "
        f"{record.created}",
        f"texts of {record.scenario['name']}, another one each call{lists}",
    ]


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


def _table(columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int) -> Table:
    """A table without the columns that are too much for the width."""
    from rich import box
    from rich.table import Table

    shown = [column.width_needed <= width for column in columns]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column, visible in zip(columns, shown, strict=True):
        if visible:
            is_name = column.header.strip() in {"call", "way", "path"}
            table.add_column(column.header, justify="left" if is_name else "right", no_wrap=is_name)
    for row in rows:
        table.add_row(*(cell for cell, seen in zip(row, shown, strict=True) if seen))
    return table


def _cost_table(figures: EncodeFigures, width: int) -> Table:
    columns = [_Column("\nids")]
    for call in figures.calls:
        columns += [_Column(f"{call}\nms/call"), _Column("\nµs/id")]
        columns += [_Column("\n±%", _NARROW), _Column("ids/s\nand core", _BROAD)]
    rows = []
    for length in figures.details.lengths:
        cells = [count(length)]
        for call in figures.calls:
            cells += _cost_cells(figures.one(call, length), figures.ids(length))
        rows.append(cells)
    return _table(columns, rows, width)


def _cost_cells(row: Row | None, ids: float) -> list[str]:
    if row is None or not row.median:
        return ["–"] * 4
    return [
        _ms(row.median, row),
        _us_an_id(row, ids),
        _spread(row),
        rate(ids / row.median),
    ]


def _ms(seconds: float, row: Row) -> str:
    return significant(seconds / 1e-3, digits_for(row.median or 0, row.ci_low, row.ci_high))


def _us_an_id(row: Row, ids: float) -> str:
    assert row.median is not None
    return significant(row.median / ids / 1e-6, digits_for(row.median, row.ci_low, row.ci_high))


def _spread(row: Row) -> str:
    spread = spread_percent(row)
    return "–" if spread is None else f"{spread:.0f}"


def _batch_table(figures: EncodeFigures, width: int) -> Table:
    threads = figures.details.threads
    columns = [
        _Column("\ncall"),
        _Column("prompts\na call"),
        _Column("ids\neach"),
        _Column("1 thread\nms/call", _BROAD),
        _Column("1 thread\nµs/id", _NARROW),
    ]
    if threads > 1:
        columns += [
            _Column(f"{threads} threads\nms/call", _BROAD),
            _Column(f"{threads} threads\nµs/id"),
            _Column("µs/id\nand core", _MEDIUM),
            _Column("÷ one\nby one", _BROAD),
        ]
    rows = []
    for call in figures.list_calls:
        for batch, length in figures.batched():
            rows.append(_batch_cells(figures, call, batch, length))
    return _table(columns, rows, width)


def _batch_cells(figures: EncodeFigures, call: str, batch: int, length: int) -> list[str]:
    threads, ids = figures.details.threads, figures.ids(length)
    cells = [call, f"{batch}", count(length)]
    for number in dict.fromkeys((1, threads)):
        row = figures.many(call, batch, length, number)
        if row is None or not row.median:
            cells += ["–", "–"]
        else:
            cells += [_ms(row.median * batch, row), _us_an_id(row, ids)]
    if threads == 1:
        return cells
    row, alone = figures.many(call, batch, length, threads), figures.one(figures.calls[0], length)
    if row is None or not row.median:
        return [*cells, "–", "–"]
    cells.append(significant(row.median * threads / ids / 1e-6, 2))
    return [*cells, times(row.median / alone.median) if alone and alone.median else "–"]


def _arrival_table(figures: EncodeFigures, width: int) -> Table:
    columns = [
        _Column("\nids"),
        _Column("requests\n/s"),
        _Column("of one\nthread", _BROAD),
        _Column("\nway"),
        _Column("wait ms\nmedian"),
        _Column("\np99", _NARROW),
        _Column("\nworst"),
        _Column("blocked\nms"),
        _Column("done\n/s", _MEDIUM),
        _Column("given\nup", _BROAD),
        _Column("\ncalls", _WIDE),
        _Column("prompts\na call", _MEDIUM),
        _Column("CPU ms\na prompt", _WIDE),
    ]
    rows = []
    before: tuple[int, float] | None = None
    for cell in figures.details.arrivals:
        rows.append(_arrival_cells(cell, before == (cell.length, cell.rate)))
        before = cell.length, cell.rate
    return _table(columns, rows, width)


def _arrival_cells(cell: ArrivalCell, same_stream: bool) -> list[str]:
    load = "–" if cell.load is None else significant(cell.load, 2)
    stream = ["", "", ""] if same_stream else [count(cell.length), f"{cell.rate:g}", load]
    done = cell.offered - cell.unfinished
    return [
        *stream,
        cell.way,
        _wait(cell.median_s),
        _wait(cell.p99_s),
        _wait(cell.worst_s),
        _wait(cell.blocked_s),
        significant(cell.throughput, 3),
        f"{cell.unfinished}" if cell.unfinished else "–",
        f"{cell.calls}",
        significant(cell.mean_batch, 2) if cell.calls else "–",
        significant(cell.cpu_s / done * 1e3, 2) if done else "–",
    ]


def _wait(seconds: float | None) -> str:
    return "–" if seconds is None else milliseconds(seconds)


def _stall_table(figures: EncodeFigures, width: int) -> Table:
    columns = [
        _Column("\npath"),
        _Column("ids\nadmitted"),
        _Column("ITL ms\nmedian", _MEDIUM),
        _Column("\np99"),
        _Column("\nworst"),
        _Column("worst\nmodelled", _BROAD),
        _Column("blocked ms\nmedian"),
        _Column("\nmodelled", _NARROW),
        _Column("\nworst", _BROAD),
        _Column("\nCPU", _WIDE),
        _Column("step\nms", _WIDE),
    ]
    rows = []
    before: str | None = None
    for cell in figures.details.stalls:
        rows.append(_stall_cells(cell, before == cell.path))
        before = cell.path
    return _table(columns, rows, width)


def _stall_cells(cell: StallCell, same_path: bool) -> list[str]:
    return [
        "" if same_path else cell.path,
        count(cell.length),
        _wait(cell.median_s),
        _wait(cell.p99_s),
        _wait(cell.worst_s),
        _wait(cell.modelled_worst_s),
        _short(cell.blocked_s),
        _short(cell.modelled_blocked_s),
        _short(cell.blocked_worst_s),
        _short(cell.blocked_cpu_s),
        _short(cell.step_s),
    ]


def _short(seconds: float | None) -> str:
    """Two digits, and nothing below a microsecond: less cannot be told on a loop."""
    if seconds is None:
        return "–"
    return "<0.001" if seconds < 1e-6 else significant(seconds / 1e-3, 2)
