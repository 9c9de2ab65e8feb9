"""A whole ``measure-c`` run, from the gate to the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from detokbench import __version__
from detokbench.bench.machine import disturbances, machine_facts, package_versions
from detokbench.bench.manager import Manager
from detokbench.bench.plan import Effort, LoadRequest, Prepared, cells_for
from detokbench.bench.rows import rows_of
from detokbench.bench.run import Outcome, collect, without_folders
from detokbench.errors import DetokbenchError
from detokbench.paths.registry import load_path_class
from detokbench.records.provenance import file_name
from detokbench.records.schema import GateResult, Record
from detokbench.workload.scenario import Scenario
from detokbench.workload.streams import output_tokens

# Rough sizes in a Python process, rounded up.
_BYTES_AN_ID = 40
_BYTES_A_ROW = 3000
_SHARE_OF_MEMORY = 0.7
Progress = Callable[[str, float], None]
"""Takes what is being done and the share of the run that is done, 0 to 1."""


def run_measure_c(
    scenario: Scenario,
    text_folder: Path,
    path_list: Sequence[str],
    effort: Effort,
    use_gate: bool,
    keep_gc: bool,
    seed: int,
    trust_remote_code: bool,
    created: str,
    command: list[str],
    progress: Progress,
) -> Outcome:
    """Gate, then time every path that passed it (all of them without the gate).

    A worker that dies, or Ctrl-C, ends the run early: the record then holds the processes that
    had finished and is marked partial. Raises what ended it where none had.
    """
    machine = machine_facts()
    _check_memory(scenario, len(path_list))
    load = LoadRequest(
        vocabulary=scenario.vocabulary, trust_remote_code=trust_remote_code, paths=list(path_list)
    )
    with Manager(load, effort.processes) as manager:
        progress(f"loading {file_name(scenario.vocabulary)}, checking every path", 0.0)
        prepared = manager.prepare(scenario, text_folder, seed, run_gate=True)
        timed = _timed_paths(path_list, prepared, use_gate)
        cells = cells_for([load_path_class(name) for name in timed], scenario, len(manager.cpus))
        run = collect(
            manager.measure(
                cells, scenario, effort, seed, keep_gc, lambda share: progress("measuring", share)
            )
        )
    shown = without_folders(scenario, prepared.vocabulary["name"])
    record = Record(
        kind="measure-c",
        created=created,
        command=command,
        detokbench=__version__,
        partial=run.error is not None,
        scenario=msgspec.to_builtins(shown),
        vocabulary=prepared.vocabulary,
        settings={**run.settings(effort, seed, keep_gc), "gate": use_gate},
        machine=machine,
        packages=package_versions(),
        warnings=disturbances(machine),
        gate=prepared.gate,
        not_applicable=prepared.not_applicable,
        rows=rows_of(cells, run.finished, run.facts, prepared.gate, shown),
        processes=run.finished,
    )
    return Outcome(record, run.error)


def _check_memory(scenario: Scenario, paths: int) -> None:
    """Refuse a batch that would not fit in memory beside the rest, before anything is loaded."""
    import psutil

    ids = scenario.prompt_len + output_tokens(max(scenario.batches))
    needed = max(scenario.batches) * ids * _BYTES_AN_ID
    needed += sum(scenario.batches) * paths * (_BYTES_A_ROW + scenario.prompt_len * _BYTES_AN_ID)
    available = psutil.virtual_memory().available
    if needed > _SHARE_OF_MEMORY * available:
        raise DetokbenchError(
            f"--batch: {max(scenario.batches):,} sequences need about {needed / 1e9:.0f} GB, "
            f"{available / 1e9:.0f} GB are free; name smaller batches or fewer paths"
        )


def _timed_paths(names: Sequence[str], prepared: Prepared, use_gate: bool) -> list[str]:
    left_out = {entry.path for entry in prepared.not_applicable}
    refused = _has_failed if use_gate else _cannot_run
    left_out |= {result.path for result in prepared.gate if refused(result)}
    return [name for name in names if name not in left_out]


def _has_failed(result: GateResult) -> bool:
    return result.verdict == "fail"


def _cannot_run(result: GateResult) -> bool:
    return result.texts == 0
