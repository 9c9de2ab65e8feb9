"""What a worker process of ``verify`` is asked, and how it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Literal

from detokbench.errors import DetokbenchError
from detokbench.paths.registry import load_path_class
from detokbench.records.schema import NotApplicable
from detokbench.records.verify import CaseResult, Difference, Growth, Seen
from detokbench.verify.case_results import check_case, step_sizes_of, stream_of
from detokbench.verify.corpus import (
    beginnings,
    cut_texts,
    orders_of_kinds,
    text_ids,
    texts_with_stops,
    whole_texts,
)
from detokbench.verify.find import Finder, stream_facts
from detokbench.verify.fuzz import Fuzz
from detokbench.verify.judge import judge
from detokbench.verify.kinds import shape
from detokbench.verify.laws import Law
from detokbench.verify.rows import MANY_ROWS, RowBreach, check_neighbours, check_number, mixed_rows
from detokbench.verify.stream import STEP_SIZES, Runner, Stream
from detokbench.verify.tally import Tally
from detokbench.verify.truth import Truth
from detokbench.verify.work import growth_of
from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.registry import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case

_WHOLE_SIZES = (1, 7)
_CUT_SIZES = (1, 3)
_KIND_SIZES = (1, 2, None)
_STOP_SIZES = (1, 3, None)


@dataclass(frozen=True)
class Bench:
    """What all tasks share: the paths by name, and whether hub code may run."""

    paths: tuple[str, ...]
    seed: int
    trust_remote_code: bool = False


Part = Literal["texts", "kinds", "fuzz"]


@dataclass(frozen=True)
class JudgeTask:
    """Put streams of one vocabulary through all paths. ``part`` says which."""

    vocabulary: str
    part: Part
    numbers: range = range(0)
    """Numbers of random streams, for the part ``fuzz``."""

    def __str__(self) -> str:
        return f"{self.part} on {self.vocabulary}"


@dataclass(frozen=True)
class RowsTask:
    """Judge the two laws that are not about single streams, as far as they are asked for."""

    vocabulary: str
    laws: frozenset[Law]
    many_rows: bool
    """Whether to open very many rows too: what a vocabulary has no part in."""

    def __str__(self) -> str:
        return f"rows and work on {self.vocabulary}"


@dataclass
class Looked:
    """Which paths do not apply to a vocabulary, or why it cannot be judged at all."""

    not_applicable: list[NotApplicable] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True)
class FindTask:
    """Shrink what broke laws on one vocabulary, and run its cases."""

    vocabulary: str
    laws: frozenset[Law]
    tally: Tally
    cases: tuple[Case, ...]

    def __str__(self) -> str:
        return f"cases and shrinking on {self.vocabulary}"


@dataclass
class Found:
    """What a FindTask gives."""

    differences: list[Difference] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)


@dataclass
class RowsAndWork:
    """What a RowsTask gives."""

    tally: Tally = field(default_factory=Tally)
    differences: list[Difference] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)


@cache
def _vocabulary(name: str, trust_remote_code: bool) -> Vocabulary:
    return load_vocabulary(name, trust_remote_code)


def look_at(bench: Bench, name: str) -> Looked:
    """Load a vocabulary and ask the paths whether they apply to it."""
    try:
        vocabulary = _vocabulary(name, bench.trust_remote_code)
        _ = vocabulary.id_bytes
    except DetokbenchError as error:
        return Looked(problem=str(error))
    except UnsupportedFamilyError as error:
        return Looked(problem=f"'{name}' has no bytes to judge texts by: {error}")
    classes = [load_path_class(path) for path in bench.paths]
    reasons = [(path.name, path.why_not(vocabulary)) for path in classes]
    return Looked([NotApplicable(path=path, why=why) for path, why in reasons if why])


def runners_for(bench: Bench, vocabulary: Vocabulary) -> dict[str, Runner]:
    """The paths that apply to a vocabulary, ready to run."""
    classes = [load_path_class(name) for name in bench.paths]
    return {
        path.name: Runner(path, vocabulary) for path in classes if path.why_not(vocabulary) is None
    }


def do_judge(bench: Bench, task: JudgeTask) -> Tally:
    """Run a JudgeTask."""
    vocabulary = _vocabulary(task.vocabulary, bench.trust_remote_code)
    runners = runners_for(bench, vocabulary)
    tally = Tally()
    for stream, sizes in _streams(bench, task, vocabulary):
        _judge_all(tally, runners, stream, sizes, vocabulary)
    tally.steps = sum(runner.steps for runner in runners.values())
    return tally


def _judge_all(
    tally: Tally,
    runners: dict[str, Runner],
    stream: Stream,
    sizes: Sequence[int | None],
    vocabulary: Vocabulary,
) -> None:
    truth = Truth(stream, vocabulary)
    kinds = ""
    for name, runner in runners.items():
        if not runner.can_judge(stream) or stream.stops.regexes:
            continue  # the truth knows no regexes: what they should do stands in cases only
        result = judge(runner, stream, truth, sizes)
        if result.breaches and not kinds:
            kinds = _shape_of(stream, vocabulary)
        tally.add(name, stream, result, kinds)
    tally.streams += 1


def _shape_of(stream: Stream, vocabulary: Vocabulary) -> str:
    """Long streams go by where they come from, since they hold every kind of id."""
    if len(stream.prompt) + len(stream.output) > 64:
        return stream.origin.partition(",")[0]
    return shape(vocabulary.id_bytes, stream.prompt, stream.output)


def _streams(
    bench: Bench, task: JudgeTask, vocabulary: Vocabulary
) -> Iterator[tuple[Stream, Sequence[int | None]]]:
    """The streams of a task's part, each with the numbers of ids a step to run it at."""
    if task.part == "fuzz":
        fuzz = Fuzz(vocabulary, bench.seed)
        for number in task.numbers:
            yield fuzz.stream(number), (1, fuzz.ids_per_step(number))
        return
    if task.part == "kinds":
        orders = orders_of_kinds(vocabulary.id_bytes, vocabulary, bench.seed)
        yield from _at(orders, _KIND_SIZES)
        return
    texts = text_ids(vocabulary)
    yield from chain(
        _at(whole_texts(texts), _WHOLE_SIZES),
        _at(beginnings(texts), STEP_SIZES),
        _at(cut_texts(texts), _CUT_SIZES),
        _at(texts_with_stops(texts, vocabulary), _STOP_SIZES),
    )


def _at(
    streams: Iterable[Stream], sizes: Sequence[int | None]
) -> Iterator[tuple[Stream, Sequence[int | None]]]:
    return ((stream, sizes) for stream in streams)


def do_rows_and_work(bench: Bench, task: RowsTask) -> RowsAndWork:
    """Run a RowsTask."""
    vocabulary = _vocabulary(task.vocabulary, bench.trust_remote_code)
    laws = task.laws
    answer = RowsAndWork()
    mixed = mixed_rows(vocabulary, text_ids(vocabulary)) if Law.ROWS in laws else []
    for name, runner in runners_for(bench, vocabulary).items():
        if Law.ROWS in laws:
            breaches = list(check_neighbours(runner.path_class, vocabulary, mixed))
            many = check_number(runner.path_class, vocabulary) if task.many_rows else None
            breaches += [] if many is None else [many]
            answer.tally.judged[name, Law.ROWS] += 3 * len(mixed) + int(task.many_rows)
            answer.tally.broken[name, Law.ROWS] += len(breaches)
            answer.differences += [_rows_differ(name, b, vocabulary) for b in breaches[:1]]
        if Law.WORK in laws:
            grown = list(growth_of(runner.path_class, vocabulary))
            answer.growth += grown
            answer.tally.judged[name, Law.WORK] += len(grown)
            answer.tally.broken[name, Law.WORK] += sum(g.growth != "flat" for g in grown)
    return answer


def _rows_differ(path: str, breach: RowBreach, vocabulary: Vocabulary) -> Difference:
    facts = stream_facts(vocabulary.name, breach.stream, 1)
    facts.rows = breach.rows
    seen = Seen(
        path=path,
        laws=[str(Law.ROWS)],
        step=len(breach.stream.output) + 1,
        expected=breach.expected,
        got=breach.got,
        text=breach.got,
        error=breach.error,
    )
    table = vocabulary.id_bytes
    return Difference(
        input=facts,
        pieces=[repr(table.pieces[i]) for i in breach.stream.output],
        prompt_pieces=[repr(table.pieces[i]) for i in breach.stream.prompt],
        right=breach.expected,
        seen=[seen],
        origin=f"{breach.rows:,} rows open, some left idle" if breach.rows >= MANY_ROWS else "rows",
        command=f"detokbench verify {path} --vocab {vocabulary.name} --laws rows",
    )


def do_find(bench: Bench, task: FindTask) -> Found:
    """Run a FindTask."""
    vocabulary = _vocabulary(task.vocabulary, bench.trust_remote_code)
    runners = runners_for(bench, vocabulary)
    finder = Finder(vocabulary, runners)
    found = Found()
    from_cases = []
    for case in task.cases:
        found.cases += [check_case(case, runner, vocabulary) for runner in runners.values()]
        for row in case.rows(vocabulary.encode):
            stream = stream_of(row, f"case {case.name}")
            _judge_all(found.tally, runners, stream, step_sizes_of(case), vocabulary)
            difference = _case_difference(finder, stream, case)
            from_cases += [] if difference is None else [difference]
    mine = finder.differences(task.tally, task.laws)
    for difference in mine:
        difference.like = _like(difference, from_cases)
    found.differences = [*from_cases, *mine]
    return found


def _case_difference(finder: Finder, stream: Stream, case: Case) -> Difference | None:
    """What differs in a case, at the smallest number of ids a step at which anything does."""
    if stream.stops.regexes:
        return None
    for size in step_sizes_of(case):
        difference = finder.describe(stream, size, stream.origin)
        if difference.seen:
            difference.report = case.report
            return difference
    return None


def _like(difference: Difference, cases: Sequence[Difference]) -> str:
    """A case in whose input the same paths break the same laws."""
    broken = _broken(difference)
    for case in cases:
        if _broken(case) == broken:
            return f"{case.origin} ({case.report})" if case.report else case.origin
    return ""


def _broken(difference: Difference) -> set[tuple[str, str]]:
    return {(seen.path, law) for seen in difference.seen for law in seen.laws}
