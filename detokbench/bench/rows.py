"""From what the processes timed to the rows of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from detokbench.bench.plan import FLOOR, Cell, CellFacts
from detokbench.bench.statistics import paired_ratios, summarize
from detokbench.records.schema import CellSamples, GateResult, GateVerdict, Metric, ProcessRun, Row
from detokbench.workload.scenario import Scenario

BASE_PATH = "fast"


class Key(NamedTuple):
    """What tells the cells of a record apart."""

    path: str
    metric: Metric
    batch: int
    threads: int | None
    prompt_len: int | None
    ids_per_step: int | None
    stream_interval: int | None
    stop: str | None

    @classmethod
    def of(cls, cell: Cell | CellSamples) -> Key:
        return cls(
            cell.path,
            cell.metric,
            cell.batch,
            cell.threads,
            cell.prompt_len,
            cell.ids_per_step,
            cell.stream_interval,
            cell.stop,
        )


def rows_of(
    cells: Sequence[Cell],
    processes: Sequence[ProcessRun],
    facts: Mapping[Cell, CellFacts],
    gate: Sequence[GateResult],
    scenario: Scenario,
) -> list[Row]:
    """One row for each cell that at least one process timed, in the order of the cells."""
    samples = samples_by_key(processes)
    verdicts = {result.path: result.verdict for result in gate}
    rows = []
    for cell in cells:
        key = Key.of(cell)
        values = samples.get(key)
        if values is not None:
            base = samples.get(key._replace(path=BASE_PATH, threads=None))
            verdict = verdicts.get(cell.path, "not-run")
            rows.append(_row(cell, values, base, facts, verdict, scenario))
    return rows


def samples_by_key(processes: Sequence[ProcessRun]) -> dict[Key, list[float | None]]:
    """The value of each cell in each process, None where a process has none."""
    table: dict[Key, list[float | None]] = {}
    for number, process in enumerate(processes):
        for cell in process.cells:
            table.setdefault(Key.of(cell), [None] * len(processes))[number] = cell.value_s
    return table


def row_of(cell: Cell, values: list[float | None], scenario: Scenario, **facts: Any) -> Row:
    """The row of a cell from its value in each process; ``facts`` are further fields of the row.

    Its figures are None where no process has a value.
    """
    present = [value for value in values if value is not None]
    summary = summarize(present) if present else None
    return Row(
        path=cell.path,
        batch=cell.batch,
        metric=cell.metric,
        median=summary.median if summary else None,
        ci_low=summary.ci_low if summary else None,
        ci_high=summary.ci_high if summary else None,
        mad=summary.mad if summary else None,
        samples=values,
        vocab=scenario.vocabulary,
        **facts,
    )


def _row(
    cell: Cell,
    values: list[float | None],
    base: list[float | None] | None,
    facts: Mapping[Cell, CellFacts],
    verdict: GateVerdict,
    scenario: Scenario,
) -> Row:
    row = row_of(
        cell,
        values,
        scenario,
        prompt_len=scenario.prompt_len if cell.prompt_len is None else cell.prompt_len,
        ids_per_step=scenario.ids_per_step if cell.prompt_len is None else 1,
        threads=cell.threads,
        gate="not-run" if cell.path == FLOOR else verdict,
    )
    _add_counts(row, cell, facts)
    if base is not None and cell.metric != "call":
        _add_ratio(row, values, base)
    return row


def _add_counts(row: Row, cell: Cell, facts: Mapping[Cell, CellFacts]) -> None:
    call_cell = Cell(path=cell.path, metric="call", batch=cell.batch, threads=cell.threads)
    counted = facts.get(call_cell)
    if counted is not None and cell.metric in {"call", "per_token"}:
        row.call = counted.call
        row.calls_per_token = counted.calls_per_token
        row.lookups_per_token = counted.lookups_per_token


def _add_ratio(row: Row, values: list[float | None], base: list[float | None]) -> None:
    ratios = paired_ratios(values, base)
    if ratios:
        summary = summarize(ratios)
        row.ratio_to_fast = summary.median
        row.ratio_ci_low, row.ratio_ci_high = summary.ci_low, summary.ci_high
