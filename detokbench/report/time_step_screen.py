"""One screen of a ``time-step`` record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from detokbench.records.schema import Record, Source
from detokbench.records.time_step import PublishedPoint
from detokbench.report.time_step_reading import read_time_step
from detokbench.report.time_step_rows import Entry, TimeStepRows, gpu_title
from detokbench.report.units import count, data_size, milliseconds, share, significant, tera, times

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MOST_BATCHES = 16
_PADDING = 3  # of a table's column: left, right and the space between two
_WIDE = 108
_MEDIUM = 84
_NARROW = 72
_SPREAD_LIMIT = 0.005


class _Style(NamedTuple):
    """How much a cell says; the fullest that fits the terminal is taken."""

    memory: str
    compute: str
    does_not_fit: str
    legend: str


_STYLES = (
    _Style(" memory", " compute", "does not fit: {needed} GB of {has} GB", ""),
    _Style(" memory", " compute", "does not fit: {needed} GB", ""),
    _Style(" m", " c", "✗ {needed} GB", "m, c: bound by memory, by compute. ✗: does not fit."),
)


class _Column(NamedTuple):
    header: str
    width_needed: int
    """Narrowest terminal that still gets this column."""
    justify: str = "right"


def print_time_step(record: Record, console: Console) -> None:
    """Heading, T_step by batch and context, what was timed, published steps, what it means."""
    rows = TimeStepRows(record)
    for line in _heading(rows):
        console.print(line, highlight=False)
    if rows.batches:
        _print_steps(rows, console)
    if rows.timed_source == "measured":
        console.print(_timed_table(rows, console.width))
    if rows.details.published:
        console.print(_published_table(rows.details.published, console.width))
    for sentence in read_time_step(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in _warnings(rows):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(rows: TimeStepRows) -> list[str]:
    from rich.markup import escape

    model, options = rows.details.model, rows.details.options
    first = (
        f"[bold]time-step[/] · {escape(model['name'])}: {_parameters(model['total_params'])} "
        f"parameters, {model['layers']} layers, {data_size(model['kv_bytes_per_token'])} of KV a "
        f"token · weights {options['weights']}, KV {options['kv']}, tp {options['tp']}"
    )
    return [first, *(f"[bold]{label}[/] · {escape(text)}" for label, text in _sources(rows))]


def _parameters(number: int) -> str:
    return f"{number / 1e9:.2f} B" if number >= 1e8 else f"{number / 1e6:.2f} M"


def _sources(rows: TimeStepRows) -> list[tuple[str, str]]:
    """A label and facts for each kind of source: what was timed, and the data sheet."""
    details, lines = rows.details, []
    if details.device is not None:
        lines.append(_timed_facts(rows, details.device))
    if details.gpu is not None:
        derate = details.options["derate"]
        label = "modelled: roofline" + (f", derated to {derate:g}" if derate else "")
        lines.append((label, _sheet(details.gpu, details.options["tp"])))
    return lines


def _timed_facts(rows: TimeStepRows, device: dict[str, Any]) -> tuple[str, str]:
    created, compiled = rows.record.created, rows.record.settings.get("compile")
    how = "layers compiled" if compiled else "not compiled"
    if rows.timed_source == "cpu":
        cpu = rows.record.machine["cpu"]
        return "cpu, not a GPU", f"{cpu} · torch {device['torch']}, {how} · timed {created}"
    copies = rows.details.copy_bandwidth_bytes_s
    copying = f", copies {significant(copies / 1e12, 3)} TB/s" if copies else ""
    return "measured", (
        f"{device['name']}: driver {device['driver']}, CUDA {device['cuda']}, power cap "
        f"{device['power_cap_w']} W, SM clock up to {device['max_sm_clock_mhz']} MHz{copying} · "
        f"torch {device['torch']}, CUDA graph, {how} · {created}"
    )


def _sheet(gpu: dict[str, Any], tp: int) -> str:
    return (
        f"{gpu_title(gpu, tp)}: {tera(gpu['bandwidth_bytes_s'])} TB/s, "
        f"{tera(gpu['bf16_flop_s'])} TFLOP/s dense bf16, {gpu['memory_gb']:g} GB "
        f"({gpu['source']})"
    )


def _print_steps(rows: TimeStepRows, console: Console) -> None:
    """The main table, and what it leaves out."""
    batches = _thinned(rows.batches)
    style, contexts = _style_and_contexts(rows, batches, console.width)
    console.print(_step_table(rows, batches, contexts, style))
    notes = ["ms a step; B: sequences, L: mean KV length in tokens.", style.legend]
    left_out = [count(context) for context in rows.contexts if context not in contexts]
    if left_out:
        notes.append(f"L = {', '.join(left_out)}: in the record, or on a wider terminal.")
    if len(batches) < len(rows.batches):
        notes.append(f"{len(rows.batches) - len(batches)} more batches are in the record.")
    console.print(" ".join(filter(None, notes)), highlight=False)


def _thinned(batches: Sequence[int]) -> list[int]:
    """At most sixteen batches, evenly picked, the first and the last among them."""
    if len(batches) <= _MOST_BATCHES:
        return list(batches)
    last = len(batches) - 1
    picks = {round(pick * last / (_MOST_BATCHES - 1)) for pick in range(_MOST_BATCHES)}
    return [batches[pick] for pick in sorted(picks)]


def _style_and_contexts(
    rows: TimeStepRows, batches: Sequence[int], width: int
) -> tuple[_Style, list[int]]:
    """The fullest style in which all contexts fit; if none, as many contexts as fit."""
    for style in _STYLES:
        if _table_width(rows, batches, rows.contexts, style) <= width:
            return style, rows.contexts
    contexts = rows.contexts
    while len(contexts) > 1 and _table_width(rows, batches, contexts, _STYLES[-1]) > width:
        contexts = [*contexts[:-2], contexts[-1]]  # the longest says most beside the first
    return _STYLES[-1], contexts


def _table_width(
    rows: TimeStepRows, batches: Sequence[int], contexts: Sequence[int], style: _Style
) -> int:
    columns = _step_columns(rows, batches, contexts, style)
    return sum(max(map(len, column)) + _PADDING for column in columns)


def _step_table(
    rows: TimeStepRows, batches: Sequence[int], contexts: Sequence[int], style: _Style
) -> Table:
    table = _plain_table()
    first, *rest = _step_columns(rows, batches, contexts, style)
    for context, source, *_ in ([*first[:2]], *(column[:2] for column in rest)):
        table.add_column(f"{context}\n{source}", justify="right", no_wrap=True)
    for cells in zip(first[2:], *(column[2:] for column in rest), strict=True):
        table.add_row(*cells)
    return table


def _step_columns(
    rows: TimeStepRows, batches: Sequence[int], contexts: Sequence[int], style: _Style
) -> list[list[str]]:
    """Columns of the main table: two lines of heading, then a cell for each batch."""
    columns = [["", "B", *(f"{batch:,}" for batch in batches)]]
    for context in contexts:
        for source in rows.sources:
            cells = (_step_cell(rows, source, batch, context, style) for batch in batches)
            columns.append([f"L = {count(context)}", source, *cells])
    return columns


def _step_cell(rows: TimeStepRows, source: Source, batch: int, context: int, style: _Style) -> str:
    entry = rows.get(source, batch, context)
    if entry is None:
        return "–"
    if not entry.point.fits:
        return style.does_not_fit.format(
            needed=f"{entry.point.memory_needed_bytes / 1e9:,.0f}",
            has=f"{rows.memory_bytes(source) / 1e9:,.0f}",
        )
    row = entry.row
    assert row.median is not None
    time = milliseconds(row.median, row.ci_low, row.ci_high)
    bounds = {"memory": style.memory, "compute": style.compute, None: ""}
    return time + bounds[entry.point.bound]


def _timed_table(rows: TimeStepRows, width: int) -> Table:
    """What was timed at the smallest batch, by context: bandwidth, graph error, clock."""
    columns: list[tuple[_Column, Callable[[Entry], str]]] = [
        (_Column("L", 0), lambda entry: count(entry.row.context or 0)),
        (_Column("ms", 0), _milliseconds),
        (_Column("spread\nof samples", 0), lambda entry: _fine_share(entry.point.spread)),
        (_Column("TB/s", 0), _bandwidth),
        (_Column("of own\ncopy", 0), lambda entry: _share(entry.point.share_of_copy)),
        (_Column("of data\nsheet", 0), lambda entry: _share(entry.point.share_of_sheet)),
        (_Column("graph\nerror", 0), lambda entry: _fine_share(entry.point.graph_error)),
        (_Column("SM clock\nMHz", _MEDIUM), _clock),
    ]
    shown = [pair for pair in columns if pair[0].width_needed <= width]
    batch = rows.batches[0]
    table = _plain_table(f"measured at B = {batch}")
    for column, _ in shown:
        table.add_column(column.header, justify="right")
    for entry in (entry for entry in rows.timed() if entry.row.batch == batch):
        table.add_row(*(cell(entry) for _, cell in shown))
    return table


def _milliseconds(entry: Entry) -> str:
    row = entry.row
    if row.median is None:
        return "–"
    return milliseconds(row.median, row.ci_low, row.ci_high)


def _bandwidth(entry: Entry) -> str:
    if not entry.row.median:
        return "–"
    return significant(entry.point.bytes_read / entry.row.median / 1e12, 3)


def _clock(entry: Entry) -> str:
    clock = entry.point.sm_clock_mhz
    return "–" if clock is None else f"{clock:,.0f}"


def _share(ratio: float | None) -> str:
    return "–" if ratio is None else share(ratio)


def _fine_share(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2%}"


def _published_table(points: Sequence[PublishedPoint], width: int) -> Table:
    columns = [
        _Column("ms", 0),
        _Column("B", 0),
        _Column("L", _MEDIUM),
        _Column("÷ roof-\nline", 0),
        _Column("engine", 0, "left"),
        _Column("covers", _WIDE, "left"),
        _Column("source", 0, "left"),
    ]
    shown = [column.width_needed <= width for column in columns]
    table = _plain_table("published, one H100")
    for column, visible in zip(columns, shown, strict=True):
        if visible:
            justify: Any = column.justify
            table.add_column(column.header, justify=justify, overflow="fold")
    for point in sorted(points, key=lambda point: (point.batch, point.t_step_s)):
        cells = _published_cells(point, width)
        table.add_row(*(cell for cell, visible in zip(cells, shown, strict=True) if visible))
    return table


def _published_cells(point: PublishedPoint, width: int) -> list[str]:
    source = point.source.partition(",")[0]
    return [
        f"{point.t_step_s / 1e-3:.2f}",
        str(point.batch),
        "?" if point.context is None else count(point.context),
        times(point.t_step_s / point.roofline_s),
        point.engine,
        point.scope,
        source if width >= _WIDE or "#" not in source else source.rpartition("/")[2],
    ]


def _plain_table(title: str | None = None) -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )


def _warnings(rows: TimeStepRows) -> list[str]:
    warnings = list(rows.record.warnings)
    timed = rows.timed()
    restless = [entry for entry in timed if (entry.point.spread or 0) > _SPREAD_LIMIT]
    if restless:
        worst = max(restless, key=lambda entry: entry.point.spread or 0)
        warnings.append(
            f"{len(restless)} of {len(timed)} points spread by more than {_SPREAD_LIMIT:.1%}, at "
            f"most by {worst.point.spread:.1%} (B = {worst.row.batch}, "
            f"L = {count(worst.row.context or 0)}): clocks moved or others ran"
        )
    if rows.record.partial:
        options = rows.details.options
        wanted = len(options["batches"]) * len(options["contexts"])
        warnings.append(f"partial: {len(timed)} of {wanted} points finished")
    return warnings
