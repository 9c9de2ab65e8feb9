"""A whole run of ``verify``: tasks for worker processes, and their answers collected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from detokbench.errors import DetokbenchError, ExitCode, usage_error
from detokbench.records.schema import NotApplicable
from detokbench.records.verify import CaseResult, Difference, Growth, VocabFacts
from detokbench.verify.essential import essential
from detokbench.verify.finding import do_find
from detokbench.verify.judging import do_judge
from detokbench.verify.laws import SINGLE_STREAM_LAWS, Law
from detokbench.verify.pool import answers, worker_pool
from detokbench.verify.tally import Tally
from detokbench.verify.tasks import Bench, FindTask, Found, Judged, JudgeTask, look_at
from detokbench.workload.cases import Case

_FUZZ_CHUNK = 500
Progress = Callable[[str, float], None]


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
    vocabularies: list[VocabFacts] = field(default_factory=list)
    not_applicable: dict[str, list[NotApplicable]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    left_out: int = 0
    growth: list[Growth] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: BaseException | None = None
    seconds: float = 0.0

    def add(self, task: JudgeTask, judged: Judged) -> None:
        """What a part of the run has seen."""
        self.tallies[task.vocabulary].merge(judged.tally)
        self.differences += judged.differences
        self.growth += judged.growth

    def add_found(self, vocabulary: str, found: Found) -> None:
        """What came of shrinking and of the cases on one vocabulary."""
        self.tallies[vocabulary].merge(found.tally)
        self.differences += found.differences
        self.cases += found.cases
        self.warnings += found.warnings


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
        if not any(tally.judged for tally in collected.tallies.values()):
            raise DetokbenchError(
                "interrupted before a part had finished: nothing is stored", ExitCode.INTERRUPTED
            ) from stop
        collected.error = stop
    except DetokbenchError as stop:
        if not any(tally.judged for tally in collected.tallies.values()):
            raise
        collected.error = stop
    _put_in_order(collected)
    collected.seconds = monotonic() - started
    return collected


def _put_in_order(collected: Collected) -> None:
    """By vocabulary, as the run was asked for, and not as the answers happened to come."""
    names = [facts.name for facts in collected.vocabularies]
    place = names.index
    collected.differences.sort(key=lambda difference: place(difference.input.vocab))
    collected.growth.sort(key=lambda growth: place(growth.vocab))
    collected.cases.sort(key=lambda case: place(case.vocab))
    collected.differences, collected.left_out = essential(collected.differences, names)


def _look(pool: ProcessPoolExecutor, bench: Bench, wanted: Wanted, collected: Collected) -> None:
    """Which paths apply to which vocabulary. Raises DetokbenchError where one has no reference."""
    found: dict[str, VocabFacts] = {}
    for name, looked in answers(pool, partial(look_at, bench), wanted.vocabularies):
        if looked.problem:
            raise DetokbenchError(looked.problem)
        collected.not_applicable[name] = looked.not_applicable
        if looked.facts is not None:
            found[name] = looked.facts
    collected.vocabularies = [found[name] for name in wanted.vocabularies]
    names = [facts.name for facts in collected.vocabularies]
    for name in names:
        if names.count(name) > 1:
            raise usage_error(f"two vocabularies are called '{name}'; judge them apart")
    collected.tallies = {name: Tally() for name in wanted.vocabularies}


def _judge(
    pool: ProcessPoolExecutor,
    bench: Bench,
    wanted: Wanted,
    collected: Collected,
    progress: Progress,
) -> None:
    tasks = list(judge_tasks(wanted))
    finished: dict[JudgeTask, Judged] = {}
    try:
        for task, judged in answers(pool, partial(do_judge, bench), tasks):
            finished[task] = judged
            progress("streaming", 0.9 * len(finished) / len(tasks))
    finally:  # in the order of the tasks: the record is the same whichever process was faster
        for task in tasks:
            if task in finished:
                collected.add(task, finished[task])


def judge_tasks(wanted: Wanted) -> Iterator[JudgeTask]:
    """The longest first, so that no process is left alone with one at the end."""
    names = wanted.vocabularies
    streams = bool(wanted.laws & SINGLE_STREAM_LAWS)
    if streams and wanted.texts:
        yield from (JudgeTask(name, "texts") for name in names)
    if Law.ROWS in wanted.laws:
        # How many rows there are is no matter of the vocabulary.
        yield from (JudgeTask(name, "rows", many_rows=name == names[0]) for name in names)
    if streams and wanted.texts:
        yield from (JudgeTask(name, "kinds") for name in names)
    if Law.WORK in wanted.laws:
        yield from (JudgeTask(name, "work") for name in names)
    if streams:
        yield from _fuzz_tasks(names, wanted.fuzz)


def _fuzz_tasks(names: tuple[str, ...], streams: int) -> Iterator[JudgeTask]:
    """Stream i of the run goes to vocabulary i modulo their number."""
    chunk = _FUZZ_CHUNK * len(names)
    for start in range(0, streams, chunk):
        first = start // len(names)
        for position, name in enumerate(names):
            share = (min(streams - start, chunk) + len(names) - 1 - position) // len(names)
            if share > 0:
                yield JudgeTask(name, "fuzz", range(first, first + share))


def _find(
    pool: ProcessPoolExecutor,
    bench: Bench,
    wanted: Wanted,
    collected: Collected,
    progress: Progress,
) -> None:
    if not wanted.laws & SINGLE_STREAM_LAWS:
        return
    tasks = [
        FindTask(name, wanted.laws, collected.tallies[name], _cases_on(wanted.cases, name))
        for name in wanted.vocabularies
    ]
    finished: dict[str, Found] = {}
    try:
        for task, found in answers(pool, partial(do_find, bench), tasks):
            finished[task.vocabulary] = found
            progress("shrinking", 0.9 + 0.1 * len(finished) / len(tasks))
    finally:
        for name in wanted.vocabularies:
            if name in finished:
                collected.add_found(name, finished[name])


def _cases_on(cases: tuple[Case, ...], vocabulary: str) -> tuple[Case, ...]:
    return tuple(case for case in cases if case.vocabulary == vocabulary)
