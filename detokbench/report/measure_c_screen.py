"""One screen of a ``measure-c`` record."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from detokbench.records.schema import GateResult, Record, Row
from detokbench.report.measure_c_rows import Rows, label
from detokbench.report.reading import ASSUMED_C_S, read_measure_c
from detokbench.report.units import (
    count,
    duration,
    microseconds,
    rate,
    significant,
    times,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MOST_BATCH_COLUMNS = 3
_WIDE = 118
_MEDIUM = 84
_NARROW = 76


class _Column(NamedTuple):
    header: str
    width_needed: int
    """Narrowest terminal that still gets this column."""


def print_measure_c(record: Record, console: Console) -> None:
    """Heading, costs, first tokens, gate, and what it means."""
    rows = Rows(record)
    for line in _heading(record):
        console.print(line, highlight=False)
    if rows.batches:
        console.print(_cost_table(rows, console.width))
        for note in _left_out(rows, console.width):
            console.print(note, highlight=False)
        console.print(_floor_line(rows, console.width), highlight=False)
    if rows.prompt_lens:
        console.print(_first_token_table(rows))
    for line in [*_gate_lines(record), *_not_applicable(record)]:
        console.print(line, highlight=False)
    for sentence in read_measure_c(record):
        console.print(f"• {sentence}", highlight=False)
    for warning in _warnings(record):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(record: Record) -> list[str]:
    vocabulary, machine, settings = record.vocabulary, record.machine, record.settings
    versions = [f"{name} {record.packages[name]}" for name in ("tokenizers", "transformers")]
    pinned = "pinned" if settings["pinned"] else "not pinned"
    collector = "on" if settings["gc"] else "off"
    return [
        f"[bold]measure-c[/] · {vocabulary['name']}: {vocabulary['ids']:,} ids, "
        f"{vocabulary['tokenizer']} ({vocabulary['source']}) · {' · '.join(versions)}",
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs · {machine['python']} · "
        f"{settings['processes_finished']} processes, {pinned}, GC {collector} · measured "
        f"{record.created}",
    ]


def _cost_table(rows: Rows, width: int) -> Table:
    from rich import box
    from rich.table import Table

    batches = _batch_columns(rows)
    columns = [
        _Column("path", 0),
        _Column("calls\n/token", _MEDIUM),
        _Column("ids→\ntokens", _WIDE),
        _Column(f"c, B={rows.main_batch}\nµs/call", _NARROW),
        _Column("10 µs\n÷ c", _WIDE),
        *(_Column(f"B={b}\nµs/token", 0 if b == rows.main_batch else _NARROW) for b in batches),
        _Column(f"±%\nB={rows.main_batch}", _MEDIUM),
        _Column(f"÷ fast\nB={rows.main_batch}", 0),
        _Column("tokens/s\nand core", _WIDE),
    ]
    shown = [column.width_needed <= width for column in columns]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column, visible in zip(columns, shown, strict=True):
        if visible:
            is_path = column.header == "path"
            table.add_column(column.header, justify="left" if is_path else "right", no_wrap=is_path)
    for path, threads in rows.timed_paths():
        cells = _cost_cells(rows, path, threads, batches)
        table.add_row(*(cell for cell, visible in zip(cells, shown, strict=True) if visible))
    return table


def _left_out(rows: Rows, width: int) -> list[str]:
    notes = []
    if width < _WIDE:
        notes.append(f"(a terminal of {_WIDE} columns shows more)")
    hidden = len(rows.batches) - len(_batch_columns(rows))
    if hidden:
        notes.append(f"({hidden} more batches are in the record and the chart)")
    return notes


def _batch_columns(rows: Rows) -> list[int]:
    """At most three batches: the smallest, the main one, the largest."""
    if len(rows.batches) <= _MOST_BATCH_COLUMNS:
        return rows.batches
    main = rows.main_batch
    assert main is not None
    return sorted({rows.batches[0], main, rows.batches[-1]})


def _cost_cells(rows: Rows, path: str, threads: int | None, batches: list[int]) -> list[str]:
    main = rows.main_batch
    assert main is not None
    row = rows.get(path, "per_token", main, threads)
    call = rows.get(path, "call", main, threads)
    return [
        label(path, threads) + _mark(row),
        _number(row.calls_per_token if row else None),
        _number(row.lookups_per_token if row else None),
        _cost(call),
        times(ASSUMED_C_S / call.median) if call and call.median else "–",
        *(_cost(rows.get(path, "per_token", batch, threads)) for batch in batches),
        _spread(row),
        times(row.ratio_to_fast) if row and row.ratio_to_fast else "–",
        rate(1 / row.median / (threads or 1)) if row and row.median else "–",
    ]


def _mark(row: Row | None) -> str:
    """``*`` for a path whose wrong text is known, ``!`` for one that nobody expected to fail."""
    return {"expected": " *", "fail": " !"}.get(row.gate if row else "", "")


def _cost(row: Row | None) -> str:
    if row is None or row.median is None:
        return "–"
    return microseconds(row.median, row.ci_low, row.ci_high)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value == round(value) else significant(value, 2)


def _spread(row: Row | None) -> str:
    """Half the interval, in per cent of the median."""
    if row is None or row.ci_low is None or row.ci_high is None or not row.median:
        return "–"
    return f"{50 * (row.ci_high - row.ci_low) / row.median:.1f}"


def _floor_line(rows: Rows, width: int) -> str:
    floors = [
        f"{microseconds(row.median)} µs at B={row.batch}"
        for batch in _batch_columns(rows)
        if (row := rows.get("empty", "floor", batch)) and row.median
    ]
    terms = ["c: the bare tokenizer call"] if width >= _NARROW else []
    if width >= _WIDE:
        terms += ["ids→tokens: look-ups beside it", "tokens/s: decoding only"]
    return (
        f"{'; '.join(terms)}{'. ' if terms else ''}Harness (in every figure): {', '.join(floors)}."
    )


def _first_token_table(rows: Rows) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("admission + first token,\nby ids of prompt")
    for prompt_len in rows.prompt_lens:
        table.add_column(f"\n{count(prompt_len)}", justify="right")
    for path in dict.fromkeys(path for path, _ in rows.right_paths()):
        costs = [rows.first_token_s(path, prompt_len) for prompt_len in rows.prompt_lens]
        table.add_row(path, *("–" if cost is None else duration(cost) for cost in costs))
    return table


def _gate_lines(record: Record) -> list[str]:
    if not record.gate:
        return []
    passed = [result.path for result in record.gate if result.verdict == "pass"]
    lines = [
        f"Gate: {record.gate[0].texts} texts in as many scripts, streamed and compared with one "
        f"decode; right: {', '.join(passed) or 'none'}."
    ]
    return lines + [_gate_line(result) for result in record.gate if result.verdict != "pass"]


def _gate_line(result: GateResult) -> str:
    if result.note.startswith("raised") or not result.texts:
        return f"! {result.path}: {result.note}."
    share = f"{len(result.differing)} of {result.texts} texts differ"
    if result.verdict == "expected":
        return f"* {result.path}: {share}, as expected: {result.note}."
    return f"! {result.path}: {share}: {result.note}."


def _not_applicable(record: Record) -> list[str]:
    return [f"n/a {entry.path}: {entry.why}." for entry in record.not_applicable]


def _warnings(record: Record) -> list[str]:
    warnings = list(record.warnings)
    if record.partial:
        done, wanted = record.settings["processes_finished"], record.settings["processes"]
        warnings.append(f"partial: {done} of {wanted} processes finished")
    # Admitting a request costs some paths less than can be told, which is no disturbance.
    disturbed = sum(
        None in row.samples for row in record.rows if row.metric in {"call", "per_token"}
    )
    if disturbed:
        warnings.append(
            f"{disturbed} figures of calls and tokens lack a process or more whose line had no "
            "slope above zero: the machine was disturbed while it ran"
        )
    if not any(row.ci_low is not None for row in record.rows) and record.rows:
        warnings.append("too few processes for intervals: run without --quick to judge differences")
    if record.scenario["stop"]:
        warnings.append("stop strings of the scenario are not applied: measure-c times decoding")
    return warnings
