"""What every measuring run has in common: processes are collected until something ends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from detokbench.bench.plan import Cell, CellFacts, Effort
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.records.provenance import file_name
from detokbench.records.schema import ProcessRun, Record
from detokbench.workload.scenario import Scenario


@dataclass
class Outcome:
    """A record, and what ended the run early, if anything did."""

    record: Record
    error: BaseException | None

    @property
    def failed_paths(self) -> list[str]:
        """Paths whose wrong text nobody expected."""
        return [result.path for result in self.record.gate if result.verdict == "fail"]

    def exit_code(self) -> ExitCode:
        """What the shell sees. Raises the error that ended the run, but for Ctrl-C."""
        if isinstance(self.error, KeyboardInterrupt):
            return ExitCode.INTERRUPTED
        if self.error is not None:
            raise self.error
        return ExitCode.FAILED_CHECK if self.failed_paths else ExitCode.OK


@dataclass
class Collected:
    """The processes that finished, what they counted, and what ended the run early."""

    finished: list[ProcessRun] = field(default_factory=list)
    facts: dict[Cell, CellFacts] = field(default_factory=dict)
    error: BaseException | None = None

    def settings(self, effort: Effort, seed: int, keep_gc: bool) -> dict[str, Any]:
        """How it was measured, for the record."""
        return {
            **msgspec.to_builtins(effort),
            "processes_finished": len(self.finished),
            "seed": seed,
            "gc": keep_gc,
            "pinned": all(process.cpu is not None for process in self.finished),
        }


def collect(answers: Iterator[tuple[ProcessRun, dict[Cell, CellFacts]]]) -> Collected:
    """Take the processes as they finish.

    A worker that dies, or Ctrl-C, ends the run early and is kept in ``error``. It is raised where
    no process had finished.
    """
    collected = Collected()
    try:
        for process, counted in answers:
            collected.finished.append(process)
            collected.facts.update(counted)
    except KeyboardInterrupt as stop:
        if not collected.finished:
            raise DetokbenchError(
                "interrupted before a process had finished: nothing is stored",
                ExitCode.INTERRUPTED,
            ) from stop
        collected.error = stop
    except DetokbenchError as stop:
        if not collected.finished:
            raise
        collected.error = stop
    return collected


def without_folders(scenario: Scenario, vocabulary: str) -> Scenario:
    """The scenario as the record shows it: file names where it had paths."""
    return msgspec.structs.replace(
        scenario, vocabulary=vocabulary, texts=[file_name(text) for text in scenario.texts]
    )
