"""The tables of a ``pipeline`` record: measured parts, and the runs of a ramp."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from detokbench.records.pipeline import PipelineDetails, Prediction, RunFacts
from detokbench.report.pipeline_verdicts import busiest_process, short_verdict, verdict
from detokbench.report.units import milliseconds, percent

if TYPE_CHECKING:
    from rich.table import Table

ALL_COLUMNS = 118
"""Width of a screen that has room for all columns of the runs' table and for whole reasons."""
MEDIUM = 100
"""Width from which on no column is left out."""


Column = tuple[str, Callable[[RunFacts], str]]
"""A header, and what stands below it for a run."""


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> Table:
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title=title, title_justify="left",
        title_style="bold",
    )  # fmt: skip
    for number, header in enumerate(headers):
        is_text = number == 0 or not header
        made.add_column(header, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        assert len(row) == len(headers)  # rich would add a column without a word
        made.add_row(*row)
    return made


def ms(seconds: float | None) -> str:
    """Seconds as ms; a dash for none."""
    return "–" if seconds is None else milliseconds(seconds)


def chunks(a_token: float | None) -> str:
    """Chunks a token; a dash for none."""
    return "–" if a_token is None else f"{a_token:.2f}"


def runs_table(details: PipelineDetails, width: int) -> Table:
    """A row a run, by batch.

    Without ``run``, ``p50`` and ``typ.`` below ``MEDIUM``; whole reasons from ``ALL_COLUMNS`` on.
    """
    columns = _columns(details, width)
    rows = [
        [read(run) for _, read in columns] for run in sorted(details.runs, key=lambda r: r.batch)
    ]
    return table([header for header, _ in columns], rows)


def _columns(details: PipelineDetails, width: int) -> list[Column]:
    def busiest(run: RunFacts) -> str:
        process = busiest_process(run, details)
        return "–" if process is None else percent(process.cpu_share or 0.0)

    of: list[Column] = [("run", lambda run: run.of)]
    typical: list[Column] = [("\ntyp.", lambda run: chunks(run.typical_chunks_per_token))]
    median: list[Column] = [("\np50", lambda run: ms(run.itl.p50))]
    is_medium = width >= MEDIUM
    return [
        ("B", lambda run: f"{run.batch}"),
        *(of if is_medium else []),
        ("ITL\nmean", lambda run: ms(run.itl.mean)),
        *(median if is_medium else []),
        ("\np99 ms", lambda run: ms(run.itl.p99)),
        ("chunks\n/token", lambda run: chunks(run.chunks_per_token)),
        *(typical if is_medium else []),
        ("lag\nms/s", lambda run: f"{max(round(1e3 * run.lag_s_per_s), 0)}"),
        ("ids\nleft", lambda run: f"{run.undelivered_ids:,.0f}"),
        ("busiest\nproc. %", busiest),
        ("", verdict if width >= ALL_COLUMNS else short_verdict),
    ]


def parts_table(prediction: Prediction, t_step_s: float) -> Table:
    """A row a part, a column a batch."""
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
    return table(headers, rows)
