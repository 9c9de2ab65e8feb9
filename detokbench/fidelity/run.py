"""A whole ``fidelity`` run: texts in worker processes, then costs, then the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from detokbench import __version__
from detokbench.bench.machine import disturbances, machine_facts, package_versions
from detokbench.bench.plan import Effort
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.fidelity.costs import Costs, measure_costs
from detokbench.fidelity.known import KNOWN
from detokbench.fidelity.pairs import TOLERANCE, Pair
from detokbench.fidelity.texts import TextTask, compare_texts
from detokbench.paths.installed_engine import ENGINE_OF_PATH, TRIED, installed_version
from detokbench.records.fidelity import EngineFacts, FidelityDetails, KnownFacts, PairTexts
from detokbench.records.schema import Record
from detokbench.verify.pool import answers, worker_pool
from detokbench.workload.cases import Case
from detokbench.workload.scenario import Scenario

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Asked:
    """What a run is to compare. ``effort`` is None where costs are not asked for."""

    pairs: tuple[Pair, ...]
    vocabularies: tuple[str, ...]
    cases: tuple[Case, ...]
    fuzz: int
    seed: int
    scenario: Scenario
    text_folder: Path
    effort: Effort | None
    keep_gc: bool = False
    trust_remote_code: bool = False


@dataclass
class Outcome:
    """A record, and what ended the timing early, if anything did."""

    record: Record
    texts: list[PairTexts]
    error: BaseException | None

    def exit_code(self) -> ExitCode:
        """1 where a text differs in what is not known, 4 where no text was compared at all.

        Raises the error that ended the run, but for Ctrl-C.
        """
        if isinstance(self.error, KeyboardInterrupt):
            return ExitCode.INTERRUPTED
        if self.error is not None:
            raise self.error
        if any(pair.differing for pair in self.texts):
            return ExitCode.FAILED_CHECK
        if not any(pair.runs for pair in self.texts):
            return ExitCode.NOTHING_TO_COMPARE
        return ExitCode.OK


def run_fidelity(
    asked: Asked, jobs: int | None, created: str, command: list[str], progress: Progress
) -> Outcome:
    """Compare texts, then costs. Raises DetokbenchError where a worker died before a figure was in.

    Ctrl-C while texts are compared stores nothing; while costs are timed, what was timed.
    """
    machine = machine_facts()
    texts = _compare(asked, jobs, progress)
    costs = Costs()
    if asked.effort is not None:
        costs = measure_costs(
            asked.pairs, asked.scenario, asked.text_folder, asked.effort, asked.seed,
            asked.keep_gc, asked.trust_remote_code, progress,
        )  # fmt: skip
    details = FidelityDetails(
        engines=_engines(asked.pairs),
        tolerance=TOLERANCE,
        texts=texts,
        costs=costs.pairs,
        known=[KnownFacts(name=known.name, says=known.says) for known in KNOWN],
        fuzz=asked.fuzz,
        seed=asked.seed,
    )
    settings = {"processes_finished": 0}
    if asked.effort is not None:
        settings = costs.run.settings(asked.effort, asked.seed, asked.keep_gc)
    record = Record(
        kind="fidelity",
        created=created,
        command=command,
        detokbench=__version__,
        partial=costs.run.error is not None,
        scenario={} if costs.scenario is None else msgspec.to_builtins(costs.scenario),
        vocabulary=costs.vocabulary,
        settings=settings,
        machine=machine,
        packages=package_versions(),
        warnings=disturbances(machine) if costs.pairs else [],
        not_applicable=costs.not_applicable,
        rows=costs.rows,
        details=msgspec.to_builtins(details),
        processes=costs.run.finished,
    )
    return Outcome(record, texts, costs.run.error)


def _compare(asked: Asked, jobs: int | None, progress: Progress) -> list[PairTexts]:
    tasks = [
        TextTask(
            name,
            asked.pairs,
            tuple(case for case in asked.cases if case.vocabulary == name),
            asked.fuzz,
            asked.seed,
            asked.trust_remote_code,
        )
        for name in asked.vocabularies
    ]
    found: dict[str, list[PairTexts]] = {}
    progress("comparing texts", 0.0)
    try:
        with worker_pool(min(jobs or len(tasks), len(tasks)) if jobs else None) as pool:
            for task, compared in answers(pool, compare_texts, tasks):
                found[task.vocabulary] = compared
                progress("comparing texts", len(found) / len(tasks))
    except KeyboardInterrupt as stop:
        raise DetokbenchError(
            "interrupted before all texts were compared: nothing is stored", ExitCode.INTERRUPTED
        ) from stop
    return [pair for name in asked.vocabularies for pair in found[name]]


def _engines(pairs: Sequence[Pair]) -> list[EngineFacts]:
    names = dict.fromkeys(ENGINE_OF_PATH[pair.theirs] for pair in pairs)
    return [
        EngineFacts(name=name, version=installed_version(name) or "", tried=list(TRIED[name]))
        for name in names
    ]
