"""A whole ``tail-str`` run, from the stops to the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from detokbench import __version__
from detokbench.bench.check_streams import STREAMS
from detokbench.bench.machine import disturbances, machine_facts, package_versions
from detokbench.bench.manager import Manager
from detokbench.bench.plan import (
    FLOOR,
    Cell,
    Effort,
    LoadRequest,
    PreparedStops,
    PrepareStopsRequest,
)
from detokbench.bench.rows import Key, row_of, samples_by_key
from detokbench.bench.run import Outcome, collect, without_folders
from detokbench.bench.stop_sets import DEFAULT_STOP, DEFAULT_STOP_TOKENS, StopSet
from detokbench.bench.tail_str_details import Asked, tail_str_details
from detokbench.records.provenance import file_name
from detokbench.records.schema import Metric, ProcessRun, Record, Row
from detokbench.workload.scenario import Scenario, override

PATH = "tail-str"
_SCANS = {"contain", "prefix_scan"}
Progress = Callable[[str, float], None]
"""Takes what is being done and the share of the run that is done, 0 to 1."""


@dataclass(frozen=True)
class StopOptions:
    """What is measured: stops and settings. ``intervals`` is empty for requests not streamed."""

    strings: list[str]
    regexes: list[str]
    growth_tokens: list[int]
    ids_per_step: list[int]
    intervals: list[int]
    checks: str = PATH
    """Whose checks are timed: ours, or by the name of its path those of an installed engine."""


def run_tail_str(
    scenario: Scenario,
    text_folder: Path,
    options: StopOptions,
    asked: Asked,
    effort: Effort,
    keep_gc: bool,
    seed: int,
    trust_remote_code: bool,
    created: str,
    command: list[str],
    progress: Progress,
) -> Outcome:
    """Make stops and streams, time the checks and their parts, and model the step from them.

    A worker that dies, or Ctrl-C, ends the run early: the record then holds the processes that
    had finished and is marked partial. Raises what ended it where none had.
    """
    machine = machine_facts()
    scenario = override(scenario, batches=[STREAMS])
    load = LoadRequest(
        vocabulary=scenario.vocabulary, trust_remote_code=trust_remote_code, paths=[]
    )
    with Manager(load, effort.processes) as manager:
        progress(f"loading {file_name(scenario.vocabulary)}, walking the streams", 0.0)
        request = _request(scenario, text_folder, manager.workload_file, options, seed)
        prepared = msgspec.convert(manager.ask_first(request), PreparedStops)
        cells = cells_of(prepared, options)
        run = collect(
            manager.measure(
                cells, scenario, effort, seed, keep_gc, lambda share: progress("measuring", share)
            )
        )
    shown = without_folders(scenario, prepared.vocabulary["name"])
    rows = check_rows(cells, run.finished, shown)
    record = Record(
        kind=PATH,
        created=created,
        command=command,
        detokbench=__version__,
        partial=run.error is not None,
        scenario=msgspec.to_builtins(shown),
        vocabulary=prepared.vocabulary,
        settings={**run.settings(effort, seed, keep_gc), "checks": options.checks},
        machine=machine,
        packages=package_versions(),
        warnings=[*disturbances(machine), *prepared.stop_warnings],
        rows=rows,
        details=msgspec.to_builtins(tail_str_details(prepared, rows, STREAMS, asked)),
        processes=run.finished,
    )
    return Outcome(record, run.error)


def _request(
    scenario: Scenario, folder: Path, workload_file: str, options: StopOptions, seed: int
) -> PrepareStopsRequest:
    """The stops asked for, else the scenario's, else a short and a long one."""
    none_asked = not options.strings and not options.regexes
    strings = scenario.stop if none_asked else options.strings
    use_default = none_asked and not strings
    return PrepareStopsRequest(
        scenario=scenario,
        text_folder=str(folder),
        workload_file=workload_file,
        seed=seed,
        strings=[DEFAULT_STOP] if use_default else strings,
        regexes=options.regexes,
        given_tokens=[DEFAULT_STOP_TOKENS] if use_default else [],
        growth_tokens=options.growth_tokens,
        ids_per_step=options.ids_per_step,
        intervals=options.intervals,
    )


def cells_of(prepared: PreparedStops, options: StopOptions) -> list[Cell]:
    """All that is timed: the checks and their parts at every setting, and the growth's."""
    cells = [Cell(path=FLOOR, metric="floor", batch=STREAMS, stops=prepared.given[0])]
    intervals: list[int | None] = list(options.intervals) or [None]
    for stops in prepared.given:
        cells += _cells_of_stops(stops, options.ids_per_step, intervals, options.checks)
    for stops in prepared.growth:
        cells += _cells_of_stops(stops, [1], [1 if options.intervals else None], options.checks)
    return list(dict.fromkeys(cells))


def _cells_of_stops(
    stops: StopSet, ids_per_step: Sequence[int], intervals: Sequence[int | None], checks: str
) -> Iterator[Cell]:
    def cell(metric: Metric, ids: int = 1, interval: int | None = None) -> Cell:
        return Cell(
            path=PATH if metric in _SCANS else checks,  # an engine has no scan without a decode
            metric=metric,
            batch=STREAMS,
            ids_per_step=ids,
            stream_interval=interval,
            stops=stops,
        )

    if stops.strings and intervals != [None]:
        # The window of the prefix check is not widened: it is that of one id a step.
        yield from (cell("decode"), cell("prefix_scan"), cell("prefix_check"))
    for ids in ids_per_step:
        yield from (cell("decode", ids), cell("contain", ids), cell("finish_check", ids))
        yield from (cell("both_checks", ids, interval) for interval in intervals)


def check_rows(
    cells: Sequence[Cell], processes: Sequence[ProcessRun], scenario: Scenario
) -> list[Row]:
    """One row for each cell that at least one process timed."""
    samples: Mapping[Key, list[float | None]] = samples_by_key(processes)
    return [
        _row(cell, values, scenario)
        for cell in cells
        if (values := samples.get(Key.of(cell))) is not None and values != [None] * len(values)
    ]


def _row(cell: Cell, values: list[float | None], scenario: Scenario) -> Row:
    facts: dict[str, Any] = {}
    if cell.metric != "floor":
        facts = {"stop": cell.stop, "stop_tokens": cell.stops.tokens if cell.stops else None}
    return row_of(
        cell,
        values,
        scenario,
        ids_per_step=cell.ids_per_step,
        stream_interval=cell.stream_interval,
        **facts,
    )
