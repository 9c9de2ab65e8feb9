"""From what the processes timed to the rows of an ``encode`` record, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.bench.plan import Cell
from detokbench.bench.rows import Key, row_of, samples_by_key
from detokbench.model.admission import blocked_s, late_gap_s
from detokbench.records.encode import EncodeDetails
from detokbench.records.schema import Metric, ProcessRun, Row
from detokbench.workload.scenario import Scenario


def encode_rows(
    cells: Sequence[Cell], processes: Sequence[ProcessRun], scenario: Scenario
) -> list[Row]:
    """One row for each cell that at least one process timed; a value is seconds a prompt."""
    samples = samples_by_key(processes)
    timed = ((cell, samples.get(Key.of(cell), [])) for cell in cells)
    return [
        row_of(cell, values, scenario, prompt_len=cell.prompt_len, threads=cell.threads)
        for cell, values in timed
        if any(value is not None for value in values)
    ]


def cost_of(rows: Sequence[Row], length: int) -> float | None:
    """Seconds of the engines' call for one prompt of a length: the first call in the record."""
    return next(
        (row.median for row in rows if row.metric == "encode" and row.prompt_len == length), None
    )


def modelled_stalls(details: EncodeDetails, rows: Sequence[Row]) -> None:
    """Put beside each measured stall what its parts, timed on their own, add up to."""

    def part(metric: Metric, path: str, length: int) -> float | None:
        wanted = (metric, path, length)
        return next(
            (row.median for row in rows if (row.metric, row.path, row.prompt_len) == wanted), None
        )

    for cell in details.stalls:
        first = part("first_token", cell.path, cell.length)
        if first is None:
            continue
        # Admitting costs some paths less than can be told apart from nothing.
        admit = part("admit", cell.path, cell.length) or 0.0
        cell.modelled_blocked_s = blocked_s(admit, first)
        cell.modelled_worst_s = late_gap_s(details.t_step_s, admit, first)
