"""A whole run of ``verify``: tasks for worker processes, and their answers collected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.records.schema import NotApplicable
from detokbench.records.verify import CaseResult, Difference, Growth
from detokbench.verify.essential import essential
from detokbench.verify.laws import Law
from detokbench.verify.pool import answers, worker_pool
from detokbench.verify.tally import Tally
from detokbench.verify.tasks import (
    Bench,
    FindTask,
    JudgeTask,
    Part,
    RowsTask,
    do_find,
    do_judge,
    do_rows_and_work,
    look_at,
)
from detokbench.workload.cases import Case

_FUZZ_CHUNK = 500
Progress = Callable[[str, float], None]
_SINGLE_STREAM_LAWS = frozenset(Law) - {Law.ROWS, Law.WORK}


@dataclass(frozen=True)
class Wanted:
    """What a run is to judge.

    ``texts`` asks for the shipped texts and the orders of kinds of ids; ``fuzz`` is a number of
    random streams, over all vocabularies together.
    """

    vocabularies: tuple[str, ...]
    paths: tuple[str, ...]
    laws: frozenset[Law]
    cases: tuple[Case, ...]
    texts: bool
    fuzz: int
    seed: int
    trust_remote_code: bool = False


@dataclass
class Collected:
    """What has come back, and what ended the run early, if anything did."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    not_applicable: dict[str, list[NotApplicable]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    left_out: int = 0
    growth: list[Growth] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    error: BaseException | None = None
    seconds: float = 0.0


def run_tasks(wanted: Wanted, jobs: int | None, progress: Progress) -> Collected:
    """Judge what is wanted, in worker processes.

    Ctrl-C or a worker that dies ends it early, and is kept in ``error``; it is raised where
    nothing had come back. Raises DetokbenchError for a vocabulary that cannot be judged.
    """
    started = monotonic()
    collected = Collected()
    bench = Bench(wanted.paths, wanted.seed, wanted.trust_remote_code)
    try:
        with worker_pool(jobs) as pool:
            _look(pool, bench, wanted, collected)
            _judge(pool, bench, wanted, collected, progress)
            _find(pool, bench, wanted, collected, progress)
    except KeyboardInterrupt as stop:
        if not any(tally.streams for tally in collected.tallies.values()):
            raise DetokbenchError(
                "interrupted before a part had finished: nothing is stored", ExitCode.INTERRUPTED
            ) from stop
        collected.error = stop
    except DetokbenchError as stop:
        if not any(tally.streams for tally in collected.tallies.values()):
            raise
        collected.error = stop
    collected.differences, collected.left_out = essential(
        collected.differences, wanted.vocabularies
    )
    collected.seconds = monotonic() - started
    return collected


def _look(pool: ProcessPoolExecutor, bench: Bench, wanted: Wanted, collected: Collected) -> None:
    """Which paths apply to which vocabulary. Raises DetokbenchError where one has no reference."""
    for name, looked in answers(pool, partial(look_at, bench), wanted.vocabularies):
        if looked.problem:
            raise DetokbenchError(looked.problem)
        collected.not_applicable[name] = looked.not_applicable
    collected.tallies = {name: Tally() for name in wanted.vocabularies}


def _judge(
    pool: ProcessPoolExecutor,
    bench: Bench,
    wanted: Wanted,
    collected: Collected,
    progress: Progress,
) -> None:
    tasks = list(_judge_tasks(wanted))
    for done, (task, tally) in enumerate(answers(pool, partial(do_judge, bench), tasks), 1):
        collected.tallies[task.vocabulary].merge(tally)
        progress("streaming", 0.8 * done / len(tasks))


def _judge_tasks(wanted: Wanted) -> Iterator[JudgeTask]:
    """The longest first, so that no process is left alone with one at the end."""
    if not wanted.laws & _SINGLE_STREAM_LAWS:
        return
    if wanted.texts:
        parts: tuple[Part, ...] = ("texts", "kinds")
        yield from (JudgeTask(v, part) for part in parts for v in wanted.vocabularies)
    count = len(wanted.vocabularies)
    for start in range(0, wanted.fuzz, _FUZZ_CHUNK * count):
        for position, vocabulary in enumerate(wanted.vocabularies):
            # Stream i of the run goes to vocabulary i modulo their number.
            first = start // count
            share = (min(wanted.fuzz - start, _FUZZ_CHUNK * count) + count - 1 - position) // count
            if share > 0:
                yield JudgeTask(vocabulary, "fuzz", range(first, first + share))


def _find(
    pool: ProcessPoolExecutor,
    bench: Bench,
    wanted: Wanted,
    collected: Collected,
    progress: Progress,
) -> None:
    if wanted.laws & {Law.ROWS, Law.WORK}:
        rows_tasks = [
            RowsTask(name, wanted.laws, many_rows=position == 0)
            for position, name in enumerate(wanted.vocabularies)
        ]
        for rows_task, answer in answers(pool, partial(do_rows_and_work, bench), rows_tasks):
            collected.tallies[rows_task.vocabulary].merge(answer.tally)
            collected.differences += answer.differences
            collected.growth += answer.growth
    tasks = [
        FindTask(name, wanted.laws, collected.tallies[name], _cases_on(wanted.cases, name))
        for name in wanted.vocabularies
    ]
    for done, (task, found) in enumerate(answers(pool, partial(do_find, bench), tasks), 1):
        collected.tallies[task.vocabulary].merge(found.tally)
        collected.differences += found.differences
        collected.cases += found.cases
        progress("shrinking", 0.8 + 0.2 * done / len(tasks))


def _cases_on(cases: tuple[Case, ...], vocabulary: str) -> tuple[Case, ...]:
    return tuple(case for case in cases if case.vocabulary == vocabulary)
