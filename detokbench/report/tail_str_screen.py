"""One screen of a ``tail-str`` record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from detokbench.records.schema import Record
from detokbench.records.tail_str import (
    Assumed,
    BatchPoint,
    Growth,
    Setting,
    StopFacts,
    TailStrDetails,
    details_of,
)
from detokbench.report.tail_str_reading import read_tail_str, t_step_words
from detokbench.report.units import count, microseconds, percent, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MOST_BATCHES = 5
_SHOWN_BATCHES = (1, 32, 128, 256, 512)
_WIDE = 132
_BROAD = 120
_MEDIUM = 104
_NARROW = 72
_LONGEST_NAME = 20


class _Column(NamedTuple):
    header: str
    width_needed: int = 0
    """Narrowest terminal that still gets this column."""


def print_tail_str(record: Record, console: Console) -> None:
    """Heading, settings, the step over the batch, hold-backs, growth, and what it means."""
    details = details_of(record)
    for line in _heading(record, details):
        console.print(line, highlight=False)
    if details.settings:
        console.print(_settings_table(details, console.width))
        console.print(_settings_note(console.width), highlight=False, markup=False)
        console.print(_batch_table(details, console.width))
    console.print(_hold_back_table(details, console.width))
    if details.growth is not None:
        console.print(_growth_table(details.growth, console.width))
    if details.assumed is not None:
        console.print(_assumed_table(details.assumed))
    for sentence in read_tail_str(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in _warnings(record, details):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(record: Record, details: TailStrDetails) -> list[str]:
    vocabulary, machine, settings = record.vocabulary, record.machine, record.settings
    versions = [f"{name} {record.packages[name]}" for name in ("tokenizers", "transformers")]
    pinned = "pinned" if settings["pinned"] else "not pinned"
    collector = "on" if settings["gc"] else "off"
    kind = "streaming" if details.streaming else "not streaming"
    return [
        f"[bold]tail-str[/] · {vocabulary['name']}: {vocabulary['ids']:,} ids, "
        f"{vocabulary['tokenizer']} ({vocabulary['source']}) · {' · '.join(versions)}",
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs · {machine['python']} · "
        f"{settings['processes_finished']} processes, {pinned}, GC {collector} · measured "
        f"{record.created}",
        f"{details.streams} requests of {record.scenario['name']}, {kind}, checked for stops "
        f"{_checked_by(record)} · T_step: {t_step_words(details.t_step)}",
    ]


def _checked_by(record: Record) -> str:
    if record.settings.get("checks") == "sglang":
        return f"by the scheduler's own code of SGLang {record.packages.get('sglang', '?')}"
    return "as SGLang 0.5.23's scheduler does"


def _table(columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int) -> Table:
    """A table without the columns that are too much for the width. Stops may look like markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = [column.width_needed <= width for column in columns]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, (column, visible) in enumerate(zip(columns, shown, strict=True)):
        if visible and number == 0:
            table.add_column(column.header, overflow="fold", max_width=_LONGEST_NAME)
        elif visible:
            table.add_column(column.header, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell, seen in zip(row, shown, strict=True) if seen))
    return table


def _settings_table(details: TailStrDetails, width: int) -> Table:
    columns = [
        _Column("stops"),
        _Column("ids/\nstep"),
        _Column("k", 0 if details.streaming else 1 << 30),
        _Column("window\ntokens", _BROAD),
        _Column("decodes\n/step", _NARROW),
        _Column("finish\ndecode", _MEDIUM),
        _Column("\ncontain", _MEDIUM),
        _Column("prefix\ndecode", _MEDIUM),
        _Column("prefix\nscan", _MEDIUM),
        _Column("model\nµs"),
        _Column("meas.\nµs"),
        _Column("\n±%", _BROAD),
        _Column("error\n%"),
        _Column("worst\n%", _NARROW),
        _Column("sets the\npace above", _WIDE),
    ]
    windows = {stops.name: stops.window for stops in details.stops}
    given = [setting for setting in details.settings if setting.is_given]
    rows: list[list[str]] = []
    before: Setting | None = None
    for setting in given:
        same = before is not None and before.stop == setting.stop
        rows.append(_setting_cells(setting, windows[setting.stop], same))
        before = setting
    return _table(columns, rows, width)


def _setting_cells(setting: Setting, window: int | None, same_stop: bool) -> list[str]:
    width = "all" if window is None else f"{window + setting.ids_per_step - 1}"
    parts = (
        setting.finish_decode_s,
        setting.contain_s,
        setting.prefix_decode_s,
        setting.prefix_scan_s,
    )
    return [
        "" if same_stop else setting.stop,
        f"{setting.ids_per_step}",
        f"{setting.stream_interval}",
        width,
        significant(setting.decodes, 3),
        *(microseconds(part) if part else "–" for part in parts),
        microseconds(setting.modelled_s),
        microseconds(setting.measured_s, setting.measured_low_s, setting.measured_high_s),
        _spread(setting),
        f"{100 * setting.error:+.0f}",
        f"{100 * setting.error_worst:+.0f}",
        _pace(setting),
    ]


def _pace(setting: Setting) -> str:
    """The crossover, short enough for a column; the reading spells it out."""
    short = {"does not fit in memory": "no room"}
    text = short.get(setting.crossover, setting.crossover)
    return f"B = {text}" if text.isdigit() else text


def _spread(setting: Setting) -> str:
    """Half the interval, in per cent of the median."""
    low, high = setting.measured_low_s, setting.measured_high_s
    if low is None or high is None:
        return "–"
    return f"{50 * (high - low) / setting.measured_s:.1f}"


def _settings_note(width: int) -> str:
    parts = (
        "The parts are µs a request and step and add up to the model. " if width >= _MEDIUM else ""
    )
    return (
        f"meas.: both checks, measured, µs a request and step. {parts}Error: modelled over "
        "measured, median over processes" + (" and the worst." if width >= _NARROW else ".")
    )


def _batch_table(details: TailStrDetails, width: int) -> Table:
    columns = [
        _Column("stops"),
        _Column("B"),
        _Column("scheduler\nms" if width >= _NARROW else "sched.\nms"),
        _Column("T_step\nms"),
        _Column("share\n%"),
        _Column("overlap:\nstep ms" if width >= _NARROW else "over-\nlap"),
        _Column("no overlap:\nstep ms" if width >= _NARROW else "no\nov."),
        _Column("\nnote", _MEDIUM),
    ]
    batches = _shown(list(dict.fromkeys(point.batch for point in details.batches)))
    points = [point for point in details.batches if point.batch in batches]
    rows = [_batch_cells(point, point.batch != batches[0]) for point in points]
    return _table(columns, rows, width)


def _shown(batches: list[int]) -> list[int]:
    """At most five batches: those that people ask for, where they are in the list."""
    if len(batches) <= _MOST_BATCHES:
        return batches
    return sorted(
        {min(batches, key=lambda batch: abs(batch - wanted)) for wanted in _SHOWN_BATCHES}
    )


def _batch_cells(point: BatchPoint, same_stop: bool) -> list[str]:
    return [
        "" if same_stop else point.stop,
        f"{point.batch}",
        _ms(point.scheduler_s),
        _ms(point.t_step_s),
        percent(point.share),
        _ms(point.step_overlap_s),
        _ms(point.step_added_s),
        "" if point.fits else "does not fit in memory",
    ]


def _ms(seconds: float) -> str:
    return significant(seconds * 1e3, 3)


def _hold_back_table(details: TailStrDetails, width: int) -> Table:
    streaming = details.streaming
    columns = [
        _Column("hold-back of\nthe stops"),
        _Column("vLLM\nchars"),
        _Column("\nms"),
        _Column("SGLang:\n% of chunks", 0 if streaming else 1 << 30),
        _Column("longest\nsteps", _NARROW if streaming else 1 << 30),
        _Column("\nchars", 0 if streaming else 1 << 30),
        _Column("\nms", 0 if streaming else 1 << 30),
    ]
    return _table(columns, [_hold_back_cells(stops) for stops in details.stops], width)


def _hold_back_cells(stops: StopFacts) -> list[str]:
    vllm = [f"{stops.hold_back_chars}", _ms(stops.hold_back_s)] if stops.strings else ["–", "–"]
    if not stops.chunks:
        return [stops.name, *vllm, "–", "–", "–", "–"]
    return [
        stops.name,
        *vllm,
        percent(stops.suppressed / stops.chunks),
        f"{stops.longest_steps}",
        f"{stops.longest_chars}",
        _ms(stops.longest_s),
    ]


def _growth_table(growth: Growth, width: int) -> Table:
    columns = [
        _Column("stop of\ntokens"),
        _Column("\nchars"),
        _Column("scanned\nchars"),
        _Column("decode\nµs", _NARROW),
        _Column("contain\nµs", _NARROW),
        _Column("prefix\nscan µs"),
        _Column("ns a\nchar"),
        _Column("both\nchecks µs"),
    ]
    rows = [
        [
            count(point.tokens),
            f"{point.chars}",
            f"{point.scanned_chars:.0f}",
            microseconds(point.decode_s),
            microseconds(point.contain_s),
            microseconds(point.prefix_scan_s),
            significant(point.prefix_scan_s / point.scanned_chars * 1e9, 2),
            microseconds(point.both_s),
        ]
        for point in growth.points
    ]
    return _table(columns, rows, width)


def _assumed_table(assumed: Assumed) -> Table:
    columns = [
        _Column(f"given: {microseconds(assumed.call_s)} µs a call\nB"),
        _Column("calls\na step"),
        _Column("scheduler\nms"),
    ]
    shown = _shown([point.batch for point in assumed.points])
    rows = [
        [f"{point.batch}", f"up to {point.calls}", _ms(point.scheduler_s)]
        for point in assumed.points
        if point.batch in shown
    ]
    return _table(columns, rows, _WIDE)


def _warnings(record: Record, details: TailStrDetails) -> list[str]:
    warnings = list(record.warnings)
    if record.partial:
        done, wanted = record.settings["processes_finished"], record.settings["processes"]
        warnings.append(f"partial: {done} of {wanted} processes finished")
    if record.rows and not any(row.ci_low is not None for row in record.rows):
        warnings.append("too few processes for intervals: run without --quick to judge differences")
    for stops in details.stops:
        if stops.cut_streams:
            warnings.append(
                f"'{stops.name}' ends {stops.cut_streams} of {details.streams} streams early: they "
                "are cut in front of it"
            )
        if stops.window is None:
            warnings.append(
                f"'{stops.name}' needs the whole output as its window: it costs more with every "
                "token that a request has"
            )
    return warnings
