"""A whole ``pipeline`` command, from what is asked to the record."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from detokbench import __version__
from detokbench.bench.machine import (
    disturbances,
    machine_facts,
    package_versions,
    usable_cpus,
)
from detokbench.bench.run import Outcome, without_folders
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.judge import RULES
from detokbench.live.one_run import Answers, run_once
from detokbench.live.ramp import Found, walk
from detokbench.live.rows import pipeline_rows
from detokbench.live.run_facts import run_facts
from detokbench.live.self_test import test_clients
from detokbench.live.setup import Asked, check_room, load
from detokbench.live.supervise import Supervisor
from detokbench.records.pipeline import PipelineDetails
from detokbench.records.schema import Record

Progress = Callable[[str, float], None]


def run_pipeline(
    asked: Asked,
    batches: list[int],
    is_ramp: bool,
    duration_s: float,
    created: str,
    command: list[str],
    progress: Progress,
) -> Outcome:
    """Run at one batch, or walk up through ``batches``.

    What a run measured before it was ended, by Ctrl-C or by a process that died, is kept: the
    record is then partial. Raises what ended it where there is nothing to keep.
    """
    machine = machine_facts()
    check_room(asked, max(batches))
    details = _empty_details(asked)
    facts: dict[str, object] = {}
    error: BaseException | None = None
    try:
        with Supervisor(asked.processes.modules()) as supervisor:
            progress("loading", 0.0)
            load(supervisor, asked, max(batches))
            facts = dict(supervisor.loaded["engine"].vocabulary)
            if asked.http:
                details.self_test = test_clients(supervisor)
            found = Found(details)
            if is_ramp:
                walk(supervisor, asked, batches, duration_s, found, progress)
            else:
                progress("running", 0.1)
                _run_one(supervisor, asked, batches[0], duration_s, details)
    except (DetokbenchError, KeyboardInterrupt) as stop:
        error = stop
    if not details.runs:
        raise _nothing(error)
    if error is not None:
        details.ended_by = "Ctrl-C" if isinstance(error, KeyboardInterrupt) else str(error)
    pinned = all(answer.pinned for answer in supervisor.loaded.values())
    return Outcome(
        _record(asked, details, facts, machine, created, command, pinned, error is not None), error
    )


def _run_one(
    supervisor: Supervisor, asked: Asked, batch: int, duration_s: float, details: PipelineDetails
) -> None:
    answers: Answers = run_once(supervisor, asked, batch, duration_s)
    details.runs.append(run_facts(answers, asked, "single"))
    if answers.error is not None:
        raise answers.error


def _nothing(error: BaseException | None) -> BaseException:
    if isinstance(error, KeyboardInterrupt):
        return DetokbenchError(
            "interrupted before anything ran: nothing is stored", ExitCode.INTERRUPTED
        )
    return error or DetokbenchError("nothing ran")


def _empty_details(asked: Asked) -> PipelineDetails:
    processes = asked.processes
    return PipelineDetails(
        topology=asked.topology,
        path=asked.path,
        t_step_s=asked.t_step_s,
        interval=asked.interval,
        chunk_size=asked.chunk_size,
        stop=asked.stop,
        front_ends=asked.front_ends,
        detokenizers=len(processes.detokenizers),
        arrival=asked.arrival,
        rate=asked.rate or None,
        max_tokens=asked.max_tokens,
        http=asked.http,
        cpus=processes.cpus(usable_cpus()),
        processes=list(processes.names),
        rule=RULES[asked.topology],
        runs=[],
    )


def _record(
    asked: Asked,
    details: PipelineDetails,
    vocabulary: dict[str, object],
    machine: dict[str, object],
    created: str,
    command: list[str],
    pinned: bool,
    partial: bool,
) -> Record:
    shown = without_folders(asked.scenario, str(vocabulary["name"]))
    return Record(
        kind="pipeline",
        created=created,
        command=command,
        detokbench=__version__,
        partial=partial,
        scenario=msgspec.to_builtins(shown),
        vocabulary=vocabulary,
        settings={
            "processes_finished": len(details.processes),
            "seed": asked.seed,
            "gc": True,
            "pinned": pinned,
        },
        machine=machine,
        packages=package_versions(),
        warnings=disturbances(machine),
        rows=pipeline_rows(details, shown.vocabulary),
        details=msgspec.to_builtins(details),
    )
