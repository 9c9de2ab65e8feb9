"""What stands below the tables of a ``pipeline`` record: the rule, the terms, the warnings."""

from __future__ import annotations

from detokbench.live.judge import BUSY_FROM
from detokbench.live.topology import ENGINE
from detokbench.records.pipeline import PipelineDetails, RunFacts
from detokbench.records.schema import Record
from detokbench.report.units import percent, significant

_LATE = 0.1  # of the steps
_EXPLAINS = 0.5  # of the late steps


def rule(details: PipelineDetails) -> str:
    """When a run counts as not keeping up; the same below every run."""
    return f"Rule: a run does not keep up when {details.rule}."


def footnotes(details: PipelineDetails, is_wide: bool) -> str:
    """What the words in the tables mean; ``is_wide``: all columns of the runs are shown."""
    itl = "ITL: a gap between two chunks spread over the ids of the second, each counted. "
    if details.prediction is None:
        return (
            f"{itl}Delays are since the engine had the ids; for chunks, the oldest. Drift: how "
            "late the last step began. States left: requests a process still held at the end; 0 is "
            "right."
        )
    lag = (
        "Lag: by how much the text falls behind the engine each second (one that catches up shows "
        "as 0). Ids left: emitted, not read at the end."
    )
    if not is_wide:
        return f"{itl}{lag}"
    return (
        f"{itl}Typ.: the median 50 ms. {lag} Run: walk, up the list; bisect, between the last that "
        "kept up and the first that did not; depth, at 0.8, 1 and 1.2 times the live B*."
    )


def warnings_of(record: Record, details: PipelineDetails) -> list[str]:
    """The record's own, and what its runs show of clients and CPUs."""
    warnings = [*record.warnings]
    if record.partial:
        warnings.append(f"ended early by {details.ended_by}: the last run is what it had got to")
    bound = [run for run in details.runs if run.is_client_bound]
    if bound:
        worst = max(run.client_share or 0 for run in bound)
        warnings.append(
            f"client-bound: the clients' process used {percent(worst)} % of a core, so that "
            "figures at the client are partly its own; use --no-http, or a larger --t-step"
        )
    return [*warnings, *_lateness(details)]


def _lateness(details: PipelineDetails) -> list[str]:
    """Steps that began late although the run's own processes had left the engine its CPU."""
    beside = _beside_engine(details)
    names = {ENGINE, *beside}
    idle = [run for run in details.runs if run.steps and _share(run, names) <= BUSY_FROM]
    worst = max(idle, key=lambda run: run.late_steps / run.steps, default=None)
    late = 0.0 if worst is None else worst.late_steps / worst.steps
    if worst is None or late <= _LATE:
        return []
    return [
        f"up to {significant(100 * late, 2)} % of a run's steps began late: "
        f"{_in_the_way(details, beside, _share(worst, set(beside)), late)}"
    ]


def _beside_engine(details: PipelineDetails) -> list[str]:
    """The run's own processes that may use the engine's CPU."""
    mine = details.cpus[ENGINE]
    return [name for name, cpus in details.cpus.items() if name != ENGINE and cpus == mine]


def _in_the_way(details: PipelineDetails, beside: list[str], busy: float, late: float) -> str:
    """Who else runs on the engine's CPU.

    A step that is due waits for a process of the run about as often as that one is busy; where
    steps are late far more often, there is something else.
    """
    if not beside or busy < _EXPLAINS * late:
        also = f", beside {_listed(beside)}" if beside else ""
        return f"something else runs on the engine's CPU{also}"
    if details.cpus[ENGINE] is None:
        return f"the engine shares the CPUs with {_listed(beside)} (not pinned)"
    return f"the engine shares its CPU with {_listed(beside)}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _share(run: RunFacts, names: set[str]) -> float:
    """The part of a core that these processes use together."""
    return sum(process.cpu_share or 0.0 for process in run.processes if process.name in names)
