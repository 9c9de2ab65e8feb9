"""One screen of a ``probe`` record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detokbench.live.itl import PERCENTILES
from detokbench.model.latency import SAMPLES_BEYOND, sample_floor
from detokbench.records.probe import Distribution, ProbeDetails, probe_details
from detokbench.records.schema import Record
from detokbench.report.probe_reading import percentiles_need, read_probe
from detokbench.report.units import significant
from detokbench.report.verify_text import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_MS = 1e-3
_SLACK = 1.1
_MOST_NOTE = 280


def print_probe(record: Record, console: Console) -> None:
    """Heading, outcomes, figures with their definitions, findings, warnings."""
    details = probe_details(record)
    for line in _heading(record, details):
        console.print(line, highlight=False)
    console.print(_outcome_table(details))
    console.print(_figure_table(details))
    for name, says in details.definitions.items():
        console.print(f"{name}: {says}.", highlight=False, markup=False)
    needed = percentiles_need(details)
    floors = ", ".join(f"{sample_floor(percent)} for p{percent}" for percent in PERCENTILES)
    console.print(
        f"–: fewer than {SAMPLES_BEYOND} samples lie beyond it ({floors} are needed), or not "
        f"known.{f' For percentiles of ITL give {needed}.' if needed else ''}",
        highlight=False,
        markup=False,
    )
    console.print()
    for sentence in read_probe(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    warnings = [*record.warnings, *_beyond_asked(details, record.settings["max_tokens"])]
    if record.partial:
        warnings.append("partial: the run was interrupted, and only what had ended is in it")
    for warning in warnings:
        console.print(f"! {plain(warning)}", highlight=False, markup=False, style="yellow")


def _beyond_asked(details: ProbeDetails, max_tokens: int) -> Iterator[str]:
    """A warning where streams had more tokens than were asked for."""
    # The tokenizer's count of a text may be a little above that of the model.
    streams = [
        facts.tokens
        for facts in details.requests
        if facts.tokens is not None
        and facts.tokens > max_tokens * (_SLACK if facts.counted_by == "tokenizer" else 1)
    ]
    if streams:
        yield (
            f"{len(streams):,} of {len(details.requests):,} streams had more than the "
            f"{max_tokens:,} tokens asked for, up to {max(streams):,}: the server does "
            "not keep to max_tokens"
        )


def _heading(record: Record, details: ProbeDetails) -> Iterator[Text]:
    from rich.text import Text

    settings = record.settings
    what = [
        "probe",
        plain(details.server),
        details.api,
        plain(details.model or "no model named"),
        f"{len(details.requests)} requests, {settings['concurrency']} at a time, "
        f"up to {settings['max_tokens']:,} tokens asked",
    ]
    title = Text(" · ".join(what))
    title.stylize("bold", 0, len("probe"))
    yield title
    machine = record.machine
    yield Text(
        f"temperature 0, seed {settings['seed']} · client: {machine['cpu']}, "
        f"{machine['cpus_usable']} CPUs, {machine['python']}, aiohttp "
        f"{record.packages['aiohttp']} · run {record.created}"
    )


def _outcome_table(details: ProbeDetails) -> Table:
    table = _plain_table()
    table.add_column("outcome", no_wrap=True)
    table.add_column("requests", justify="right")
    table.add_column("which is", overflow="fold")
    for count in details.outcomes:
        note = f" ({plain(count.note, _MOST_NOTE)})" if count.note else ""
        table.add_row(count.outcome, f"{count.requests:,}", _text(f"{count.says}{note}"))
    return table


def _figure_table(details: ProbeDetails) -> Table:
    table = _plain_table()
    table.add_column("ms", no_wrap=True)
    for head in ("mean", *(f"p{percent}" for percent in PERCENTILES), "largest", "samples"):
        table.add_column(head, justify="right", no_wrap=True)
    figures = (details.ttft, details.chunk_gap, details.filled_gap, details.itl)
    for name, figure in zip(details.definitions, figures, strict=True):
        table.add_row(name, *_cells(figure))
    return table


def _cells(figure: Distribution) -> list[str]:
    values = (figure.mean_s, figure.p50_s, figure.p90_s, figure.p99_s, figure.max_s)
    shown = ["–" if value is None else significant(value / _MS, 3) for value in values]
    return [*shown, f"{figure.samples:,}"]


def _text(words: str) -> Text:
    from rich.text import Text

    return Text(words)


def _plain_table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
