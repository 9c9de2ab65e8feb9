"""Which runs of a ``frontend`` record are shown, and what is added up from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from detokbench.records.frontend import (
    PLAIN,
    FrontendAnswer,
    FrontendDetails,
    FrontendLimit,
    FrontendRun,
)
from detokbench.report.units import significant

OURS = ("engine", "client")
"""Roles that are not the front end's."""
_WORTH = 0.01
_ORDER = ("http", "rust", "detokenizer", "supervisor")


def roles_of(runs: Iterable[FrontendRun]) -> list[str]:
    """Roles in the order of tables: the front end's own, then ours."""
    found = dict.fromkeys(part.role for run in runs for part in run.roles)
    first = [role for role in _ORDER if role in found]
    others = [role for role in found if role not in (*_ORDER, *OURS)]
    return [*first, *others, *(role for role in OURS if role in found)]


def roles_worth_showing(runs: Sequence[FrontendRun]) -> list[str]:
    """Roles but those of the front end that never use a hundredth of its CPU."""
    return [
        role
        for role in roles_of(runs)
        if role in OURS
        or any((run.cpu(role) or 0.0) > _WORTH * (own_cpu_s(run) or 0.0) for run in runs)
    ]


def own_cpu_s(run: FrontendRun) -> float | None:
    """CPU a token of all roles of the front end; None where no ids came."""
    parts = [part.s_per_token for part in run.roles if part.role not in OURS]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def shown_runs(details: FrontendDetails, engine: str) -> list[FrontendRun]:
    """Grid and variants of one engine; of several runs alike one that holds, else the last."""
    chosen: dict[tuple[str, int, float], FrontendRun] = {}
    for run in details.runs:
        key = (run.variant, run.streams, run.t_step_s)
        if run.engine == engine and run.of != "search" and not _holds(chosen.get(key)):
            chosen[key] = run
    plain = [run for run in chosen.values() if run.variant == PLAIN]
    others = [run for run in chosen.values() if run.variant != PLAIN]
    return [*sorted(plain, key=lambda run: (run.streams, -run.t_step_s)), *others]


def _holds(run: FrontendRun | None) -> bool:
    return run is not None and run.holds


def main_run(details: FrontendDetails, engine: str) -> FrontendRun | None:
    """The run that stands for an engine: most streams, the shortest T_step that holds there."""
    plain = [run for run in shown_runs(details, engine) if run.variant == PLAIN]
    most = max((run.streams for run in plain), default=0)
    plain = [run for run in plain if run.streams == most]
    holding = [run for run in plain if run.holds]
    return min(holding or plain, key=lambda run: run.t_step_s, default=None)


def common_run(details: FrontendDetails) -> dict[str, FrontendRun]:
    """A run of each engine at the same streams and T_step: most streams, shortest that all hold.

    Where there is none that all hold, the longest T_step that all ran.
    """
    names = [engine.name for engine in details.engines]
    by_point: dict[tuple[int, float], dict[str, FrontendRun]] = {}
    for name in names:
        for run in shown_runs(details, name):
            if run.variant == PLAIN:
                by_point.setdefault((run.streams, run.t_step_s), {})[name] = run
    whole = {point: runs for point, runs in by_point.items() if len(runs) == len(names)}
    if not whole:
        return {}
    most = max(streams for streams, _ in whole)
    at_most = {point: runs for point, runs in whole.items() if point[0] == most}
    held = [p for p, runs in at_most.items() if all(run.holds for run in runs.values())]
    point = min(held, key=lambda p: p[1]) if held else max(at_most, key=lambda p: p[1])
    return whole[point]


def limits_of(details: FrontendDetails, engine: str) -> list[FrontendLimit]:
    """The limits of one engine, by streams."""
    found = [limit for limit in details.limits if limit.engine == engine]
    return sorted(found, key=lambda limit: limit.streams)


def rate_text(limit: FrontendLimit) -> str:
    """The highest rate that held: ``32,000``, ``≥ 51,000`` where others set the limit."""
    if limit.rate is None:
        return "none held"
    return f"{'≥ ' if limit.is_bound else ''}{significant(limit.rate, 3)}"


def answer_text(answer: FrontendAnswer) -> str:
    """B* for a table: ``≥ 96`` where the limit that it follows from is one."""
    is_number = answer.answer.isdigit()
    return f"≥ {answer.answer}" if answer.is_bound and is_number else answer.answer


def variant_pairs(
    details: FrontendDetails, engine: str
) -> Sequence[tuple[FrontendRun, FrontendRun]]:
    """Each variant's run, and the plain one at the same point."""
    runs = shown_runs(details, engine)
    plain = {(run.streams, run.t_step_s): run for run in runs if run.variant == PLAIN}
    return [
        (run, plain[(run.streams, run.t_step_s)])
        for run in runs
        if run.variant != PLAIN and (run.streams, run.t_step_s) in plain
    ]
