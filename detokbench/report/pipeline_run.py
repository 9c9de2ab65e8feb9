"""One run of a ``pipeline`` record: its distributions, its processes, what became of its ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.pipeline import ProcessFacts, Quantiles, RunFacts
from detokbench.report.pipeline_tables import chunks, ms, table
from detokbench.report.pipeline_verdicts import at_batch
from detokbench.report.units import duration, percent

if TYPE_CHECKING:
    from rich.console import Console


def _cells(name: str, of: Quantiles) -> list[str]:
    return [
        name,
        f"{of.count:,}",
        ms(of.mean),
        ms(of.p50),
        ms(of.p90),
        ms(of.p99),
        ms(of.longest),
    ]


def print_run(run: RunFacts, console: Console) -> None:
    """Two tables and two lines."""
    headers = ["ms", "samples", "mean", "p50", "p90", "p99", "longest"]
    rows = [_cells("ITL a token", run.itl), _cells("gap between chunks", run.gap)]
    rows += [_cells(f"emitted → {hop.name}", hop.delay) for hop in run.hops]
    title = f"{at_batch(run).removeprefix('at ')}, {run.duration_s:.1f} s, "
    title += f"{run.steps:,} steps, {run.ids:,} ids"
    console.print(table(headers, rows, title))
    processes = [
        [
            process.name,
            "–" if process.cpu_share is None else percent(process.cpu_share),
            "–" if process.cpu_s_per_step is None else f"{1e6 * process.cpu_s_per_step:.0f}",
            ms(process.longest_block_s),
            _memory(process),
            f"{process.states_left}",
        ]
        for process in run.processes
    ]
    names = ["process", "CPU %", "µs a step", "loop blocked, ms", "memory, MB", "states left"]
    console.print(table(names, processes))
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
        f"{chunks(run.chunks_per_token)} chunks a token, {chunks(run.typical_chunks_per_token)} "
        f"in the median 50 ms · {run.undelivered_ids:,.0f} ids not delivered at the end, "
        f"{_growth(run.growth_ids_per_s)}",
        highlight=False,
    )


def _growth(ids_per_s: float) -> str:
    """What the ids that wait gain a second: nothing, more, or less."""
    if abs(ids_per_s) < 0.5:
        return "a steady number"
    return f"{'growing' if ids_per_s > 0 else 'shrinking'} by {abs(ids_per_s):,.0f} a second"


def _memory(process: ProcessFacts) -> str:
    """At the first quarter of the run and at its end: 267 → 268."""
    sizes = [size / 1e6 for _, size in process.memory]
    if not sizes:
        return "–"
    return f"{sizes[len(sizes) // 4]:.0f} → {sizes[-1]:.0f}"
