"""A whole ``sweep`` run: host cost a step at every batch and stream interval, and what is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from detokbench import __version__
from detokbench.bench.chunks import PARTS
from detokbench.bench.machine import disturbances, machine_facts, package_versions
from detokbench.bench.manager import Manager
from detokbench.bench.plan import (
    Cell,
    Effort,
    LoadRequest,
    Prepared,
    thread_counts,
)
from detokbench.bench.rows import Key, row_of, samples_by_key
from detokbench.bench.run import Outcome, collect, without_folders
from detokbench.bench.stop_sets import one_set
from detokbench.model.stream_interval import ids_per_chunk
from detokbench.paths.protocol import PathClass
from detokbench.paths.registry import load_path_class
from detokbench.records.provenance import file_name
from detokbench.records.schema import GateResult, ProcessRun, Record, Row
from detokbench.records.sweep import SGLANG_PATHS, SweepOptions
from detokbench.workload.scenario import Scenario
from detokbench.workload.streams import STEPS_AT_LEAST

Progress = Callable[[str, float], None]
"""Takes what is being done and the share of the run that is done, 0 to 1."""
_CHECKED_BATCH = 32
"""Batch at which stop checks are timed: they are a request's own, whatever the others do."""


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep measures. ``options`` says what it is set against."""

    scenario: Scenario
    text_folder: Path
    paths: Sequence[str]
    options: SweepOptions
    effort: Effort
    seed: int
    keep_gc: bool
    trust_remote_code: bool


# A sweep has ten times the cells of measure-c, and each of them needs less: it is the line
# through many batches that counts.
_DEFAULT_EFFORT = Effort(name="default", processes=5, warmup_ms=1, visit_ms=4, visits=2)
_QUICK_EFFORT = Effort(name="quick", processes=2, warmup_ms=0.5, visit_ms=1, visits=1)
_RIGOROUS_EFFORT = Effort(name="rigorous", processes=15, warmup_ms=2, visit_ms=8, visits=3)


def effort_for(quick: bool, rigorous: bool) -> Effort:
    """What a sweep spends."""
    return _QUICK_EFFORT if quick else _RIGOROUS_EFFORT if rigorous else _DEFAULT_EFFORT


def run_sweep(
    plan: SweepPlan,
    created: str,
    command: list[str],
    progress: Progress,
    finished: Sequence[ProcessRun] = (),
) -> Outcome:
    """Gate, then time every path that passed it; ``finished`` are processes of an earlier run.

    A worker that dies, or Ctrl-C, ends the run early: the record then holds the processes that
    had finished and is marked partial. Raises what ended it where none had.
    """
    machine = machine_facts()
    scenario, options = plan.scenario, plan.options
    load = LoadRequest(
        vocabulary=scenario.vocabulary,
        trust_remote_code=plan.trust_remote_code,
        paths=list(plan.paths),
    )
    most_ids = ids_per_chunk(max(options.intervals), options.ids_per_step)
    with Manager(load, plan.effort.processes - len(finished)) as manager:
        progress(f"loading {file_name(scenario.vocabulary)}, checking every path", 0.0)
        prepared = manager.prepare(
            scenario,
            plan.text_folder,
            plan.seed,
            run_gate=True,
            output_len=STEPS_AT_LEAST * most_ids,
            walk_stops=True,
        )
        cells = sweep_cells(_timed_classes(plan.paths, prepared), scenario, options, manager.cpus)
        run = collect(
            manager.measure(
                cells,
                scenario,
                plan.effort,
                plan.seed + 1000 * len(finished),
                plan.keep_gc,
                lambda share: progress("measuring", share),
            )
        )
    run.finished[:0] = finished
    shown = without_folders(scenario, prepared.vocabulary["name"])
    record = Record(
        kind="sweep",
        created=created,
        command=command,
        detokbench=__version__,
        partial=run.error is not None,
        scenario=msgspec.to_builtins(shown),
        vocabulary=prepared.vocabulary,
        settings=run.settings(plan.effort, plan.seed, plan.keep_gc),
        machine=machine,
        packages=package_versions(),
        warnings=[*disturbances(machine), *prepared.stop_warnings],
        gate=prepared.gate,
        not_applicable=prepared.not_applicable,
        rows=sweep_rows(cells, run.finished, prepared.gate, shown),
        details={"options": msgspec.to_builtins(options)},
        processes=run.finished,
    )
    return Outcome(record, run.error)


def _timed_classes(names: Sequence[str], prepared: Prepared) -> list[PathClass]:
    """Paths that apply and whose text is right or wrong for a known reason."""
    left_out = {entry.path for entry in prepared.not_applicable}
    left_out |= {result.path for result in prepared.gate if result.verdict == "fail"}
    return [load_path_class(name) for name in names if name not in left_out]


def sweep_cells(
    classes: Sequence[PathClass], scenario: Scenario, options: SweepOptions, cpus: Sequence[int]
) -> list[Cell]:
    """Steps of every path at every batch, and at every interval where one spares decoding."""
    cells = [
        Cell(
            path=path_class.name,
            metric="host_step",
            batch=batch,
            threads=threads,
            ids_per_step=ids_per_chunk(interval, options.ids_per_step),
            stream_interval=interval,
        )
        for path_class in classes
        for threads in thread_counts(path_class, len(cpus))
        for interval in (options.intervals if path_class.name in SGLANG_PATHS else [1])
        for batch in scenario.batches
    ]
    cells += [Cell(path=part, metric="chunk", batch=1) for part in PARTS]
    cells += [
        Cell(path=f"logprobs-{number}", metric="logprobs", batch=1, alternatives=number)
        for number in options.logprobs
        if number
    ]
    return cells + _stop_cells(scenario.stop, options)


def _stop_cells(stops: Sequence[str], options: SweepOptions) -> list[Cell]:
    if not stops:
        return []
    return [
        Cell(
            path="tail-str",
            metric="both_checks",
            batch=_CHECKED_BATCH,
            ids_per_step=options.ids_per_step,
            stream_interval=interval,
            stops=one_set(stops),
        )
        for interval in options.intervals
    ]


def sweep_rows(
    cells: Sequence[Cell],
    processes: Sequence[ProcessRun],
    gate: Sequence[GateResult],
    scenario: Scenario,
) -> list[Row]:
    """One row for each cell that at least one process timed, in the order of the cells."""
    samples = samples_by_key(processes)
    verdicts = {result.path: result.verdict for result in gate}
    rows = []
    for cell in cells:
        values = samples.get(Key.of(cell), [])
        if all(value is None for value in values):
            continue
        rows.append(
            row_of(
                cell,
                values,
                scenario,
                prompt_len=scenario.prompt_len if cell.metric == "host_step" else None,
                ids_per_step=scenario.ids_per_step,
                stream_interval=cell.stream_interval,
                stop=cell.stop,
                threads=cell.threads,
                gate=verdicts.get(cell.path, "not-run"),
            )
        )
    return rows
