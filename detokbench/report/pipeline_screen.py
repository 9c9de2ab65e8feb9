"""One screen of a ``pipeline`` record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.pipeline import PipelineDetails, details_of
from detokbench.records.schema import Record
from detokbench.report.pipeline_notes import footnotes, rule, warnings_of
from detokbench.report.pipeline_reading import read_pipeline
from detokbench.report.pipeline_run import print_run
from detokbench.report.pipeline_tables import ALL_COLUMNS, MEDIUM, parts_table, runs_table
from detokbench.report.units import given
from detokbench.report.verify_text import quoted

if TYPE_CHECKING:
    from rich.console import Console


def print_pipeline(record: Record, console: Console) -> None:
    """Heading; for one run its distributions and processes, for a ramp its runs and parts."""
    details = details_of(record)
    for line in _heading(record, details):
        console.print(line, highlight=False)
    if details.prediction is None:
        for run in details.runs:
            print_run(run, console)
    else:
        console.print(parts_table(details.prediction, details.t_step_s))
        console.print(runs_table(details, console.width))
        if console.width < MEDIUM:
            console.print(f"(more columns at {ALL_COLUMNS})", highlight=False)
    for line in (rule(details), footnotes(details, console.width >= MEDIUM)):
        console.print(line, highlight=False, markup=False)
    for sentence in read_pipeline(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in warnings_of(record, details):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(record: Record, details: PipelineDetails) -> list[str]:
    vocabulary, machine = record.vocabulary, record.machine
    versions = [f"{name} {record.packages[name]}" for name in ("tokenizers", "transformers")]
    arrival = "closed" if details.rate is None else f"poisson, {details.rate:g} requests a second"
    stops = f"stops {', '.join(map(quoted, details.stop))}" if details.stop else "no stop strings"
    chunk = f", slices of {details.chunk_size}" if details.topology == "vllm" else ""
    return [
        f"[bold]pipeline[/] · {details.topology}, path {details.path} · {vocabulary['name']}: "
        f"{vocabulary['ids']:,} ids · {' · '.join(versions)}",
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs, load {machine['load_1min']} before it · "
        f"{machine['python']} · measured {record.created}",
        f"{' → '.join(_stages(details))} ({_pinned(record, details)}) · T_step "
        f"{given(details.t_step_s)} (given) "
        f"· k = {details.interval}{chunk} · arrivals {arrival}, up to {details.max_tokens} ids · "
        f"{_escaped(stops)}",
    ]


def _pinned(record: Record, details: PipelineDetails) -> str:
    if record.settings["pinned"]:
        return "pinned"
    if None in details.cpus.values():
        return "not pinned: more processes than CPUs"
    return "not pinned"


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


def _stages(details: PipelineDetails) -> list[str]:
    stages = []
    for kind, number in (
        ("engine", 1),
        ("detokenizer", details.detokenizers),
        ("front end", details.front_ends),
        ("clients over HTTP", int(details.http)),
    ):
        if number:
            stages.append(kind if number == 1 else f"{number} {kind}s")
    return stages
