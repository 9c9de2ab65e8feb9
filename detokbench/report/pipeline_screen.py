"""One screen of a ``pipeline`` record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from detokbench.live.judge import BUSY_FROM
from detokbench.live.topology import ENGINE
from detokbench.records.pipeline import (
    PipelineDetails,
    Prediction,
    ProcessFacts,
    Quantiles,
    RunFacts,
    details_of,
)
from detokbench.records.schema import Record
from detokbench.report.pipeline_reading import read_pipeline
from detokbench.report.units import duration, milliseconds, percent, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MEDIUM = 96


def print_pipeline(record: Record, console: Console) -> None:
    """Heading; for one run its distributions and processes, for a ramp its runs and parts."""
    details = details_of(record)
    for line in _heading(record, details):
        console.print(line, highlight=False)
    if details.prediction is None:
        for run in details.runs:
            _print_run(run, console)
    else:
        console.print(_parts_table(details.prediction, details.t_step_s))
        console.print(_runs_table(details, console.width))
    console.print(_legend(details), highlight=False, markup=False)
    for sentence in read_pipeline(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in _warnings(record, details):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(record: Record, details: PipelineDetails) -> list[str]:
    vocabulary, machine = record.vocabulary, record.machine
    versions = [f"{name} {record.packages[name]}" for name in ("tokenizers", "transformers")]
    arrival = "closed" if details.rate is None else f"poisson, {details.rate:g} requests a second"
    stops = "no stop strings" if not details.stop else f"stops {details.stop}"
    chunk = f", slices of {details.chunk_size}" if details.topology == "vllm" else ""
    pinned = "pinned" if record.settings["pinned"] else "not pinned"
    return [
        f"[bold]pipeline[/] · {details.topology}, path {details.path} · {vocabulary['name']}: "
        f"{vocabulary['ids']:,} ids · {' · '.join(versions)}",
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs, load {machine['load_1min']} before it · "
        f"{machine['python']} · measured {record.created}",
        f"{' → '.join(_stages(details))} ({pinned}) · T_step {duration(details.t_step_s)} (given) "
        f"· k = {details.interval}{chunk} · arrivals {arrival}, up to {details.max_tokens} ids · "
        f"{_escaped(stops)}",
    ]


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


def _table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None
) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title=title, title_justify="left",
        title_style="bold",
    )  # fmt: skip
    for number, header in enumerate(headers):
        is_text = number == 0 or not header
        table.add_column(header, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        assert len(row) == len(headers)  # rich would add a column without a word
        table.add_row(*row)
    return table


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else milliseconds(seconds)


def _cells(name: str, of: Quantiles) -> list[str]:
    return [
        name,
        f"{of.count:,}",
        _ms(of.mean),
        _ms(of.p50),
        _ms(of.p90),
        _ms(of.p99),
        _ms(of.longest),
    ]


def _print_run(run: RunFacts, console: Console) -> None:
    headers = ["ms", "samples", "mean", "p50", "p90", "p99", "longest"]
    rows = [_cells("ITL a token", run.itl), _cells("gap between chunks", run.gap)]
    rows += [_cells(f"emitted → {hop.name}", hop.delay) for hop in run.hops]
    title = f"B = {run.batch}, {run.duration_s:.1f} s, {run.steps:,} steps, {run.ids:,} ids"
    console.print(_table(headers, rows, title))
    processes = [
        [
            process.name,
            "–" if process.cpu_share is None else percent(process.cpu_share),
            "–" if process.cpu_s_per_step is None else f"{1e6 * process.cpu_s_per_step:.0f}",
            _ms(process.longest_block_s),
            _memory(process),
            f"{process.states_left}",
        ]
        for process in run.processes
    ]
    names = ["process", "CPU %", "µs a step", "loop blocked, ms", "memory, MB", "states left"]
    console.print(_table(names, processes))
    checks = (
        f", stop checks {duration(run.check_s_per_step)} a step" if run.check_s_per_step else ""
    )
    console.print(
        f"engine: {run.late_steps:,} of {run.steps:,} steps late (worst "
        f"{duration(run.worst_late_s)}), drift at the end {duration(run.drift_s)}{checks}; "
        f"{run.requests:,} requests, "
        f"{run.finished:,} ended, {run.aborted:,} aborted",
        highlight=False,
    )
    console.print(
        f"{_chunks(run.chunks_per_token)} chunks a token, {_chunks(run.typical_chunks_per_token)} "
        f"in the median 50 ms · {run.undelivered_ids:,.0f} ids not delivered at the end, "
        f"growing by {run.growth_ids_per_s:,.0f} a second",
        highlight=False,
    )


def _memory(process: ProcessFacts) -> str:
    """At the first quarter of the run and at its end: 267 → 268."""
    sizes = [size / 1e6 for _, size in process.memory]
    if not sizes:
        return "–"
    return f"{sizes[len(sizes) // 4]:.0f} → {sizes[-1]:.0f}"


def _chunks(a_token: float | None) -> str:
    return "–" if a_token is None else f"{a_token:.2f}"


def _runs_table(details: PipelineDetails, width: int) -> Table:
    headers = [
        "B",
        "run",
        "ITL\nmean",
        "\np50",
        "\np99 ms",
        "chunks\n/token",
        "\ntyp.",
        "lag\nms/s",
        "ids\nleft",
    ]
    is_wide = width >= _MEDIUM
    if is_wide:
        headers += ["busiest\nCPU %"]
    rows = []
    for run in sorted(details.runs, key=lambda run: run.batch):
        row = [
            f"{run.batch}",
            run.of,
            _ms(run.itl.mean),
            _ms(run.itl.p50),
            _ms(run.itl.p99),
            _chunks(run.chunks_per_token),
            _chunks(run.typical_chunks_per_token),
            f"{round(1e3 * run.lag_s_per_s)}",
            f"{run.undelivered_ids:,.0f}",
        ]
        if is_wide:
            row.append(percent(max((p.cpu_share or 0 for p in run.processes), default=0)))
        rows.append([*row, run.broken or "keeps up"])
    return _table([*headers, ""], rows)


def _parts_table(prediction: Prediction, t_step_s: float) -> Table:
    headers = ["µs a step (measured parts)", *(f"B = {batch}" for batch in prediction.batches)]
    rows = []
    for process, part in dict.fromkeys((p.process, p.part) for p in prediction.parts):
        at = {
            p.batch: p.seconds for p in prediction.parts if (p.process, p.part) == (process, part)
        }
        cells = [f"{1e6 * at[b]:,.0f}" if b in at else "–" for b in prediction.batches]
        rows.append([f"{process}: {part}", *cells])
    total = [f"{1e6 * seconds:,.0f}" for seconds in prediction.host_s]
    rows.append([f"busiest CPU: {prediction.busiest}", *total])
    rows.append(["T_step (given)", *(f"{1e6 * t_step_s:,.0f}" for _ in total)])
    return _table(headers, rows)


def _legend(details: PipelineDetails) -> str:
    return (
        f"Does not keep up: {details.rule}. ITL: a gap between two chunks spread over the ids of "
        "the second, each counted. Typ.: the median 50 ms. Delays are since the engine had the "
        "ids; for chunks, the oldest."
    )


def _warnings(record: Record, details: PipelineDetails) -> list[str]:
    warnings = [*record.warnings]
    if record.partial:
        warnings.append(f"ended early by {details.ended_by}: the last run is what it had got to")
    bound = [run for run in details.runs if run.is_client_bound]
    if bound:
        worst = max(run.client_share or 0 for run in bound)
        warnings.append(
            f"client-bound: the clients' process used {percent(worst)} % of a core, so that "
            "figures at the client are partly its own; use --no-http, or a larger --t-step"
        )
    return [*warnings, *_lateness(details)]


def _lateness(details: PipelineDetails) -> list[str]:
    """Steps that began late although the run's own processes had left the engine its CPU."""
    mine = details.cpus[ENGINE]
    names = {ENGINE, *(n for n, cpus in details.cpus.items() if mine is not None and cpus == mine)}
    idle = [run for run in details.runs if run.steps and _share(run, names) <= BUSY_FROM]
    late = max((run.late_steps / run.steps for run in idle), default=0.0)
    if late <= 0.1:
        return []
    return [
        f"up to {significant(100 * late, 2)} % of a run's steps began late: something else runs "
        "on the engine's CPU"
    ]


def _share(run: RunFacts, names: set[str]) -> float:
    """The part of a core that these processes use together."""
    return sum(process.cpu_share or 0.0 for process in run.processes if process.name in names)
