"""Finding: from what broke laws on one vocabulary to differences, and its cases."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.records.verify import Difference
from detokbench.verify.case_results import (
    check_case,
    step_sizes_of,
    stream_of,
    warnings_about,
)
from detokbench.verify.find import Finder
from detokbench.verify.judging import judge_all
from detokbench.verify.laws import Law
from detokbench.verify.stream import Stream
from detokbench.verify.tasks import Bench, FindTask, Found, runners_for, vocabulary_for
from detokbench.workload.cases import Case


def do_find(bench: Bench, task: FindTask) -> Found:
    """Run a FindTask."""
    vocabulary = vocabulary_for(bench, task.vocabulary)
    runners = runners_for(bench, vocabulary)
    finder = Finder(vocabulary, runners)
    found = Found()
    from_cases = []
    for case in task.cases:
        found.warnings += warnings_about(case, vocabulary)
        found.cases += [check_case(case, runner, vocabulary) for runner in runners.values()]
        for row in case.rows(vocabulary.encode):
            stream = stream_of(row, f"case {case.name}")
            judge_all(found.tally, runners, stream, step_sizes_of(case), vocabulary)
            difference = _case_difference(finder, stream, case)
            from_cases += [] if difference is None else [difference]
    mine = finder.differences(task.tally, task.laws)
    for difference in mine:
        difference.like = _like(difference, from_cases)
    found.differences = [
        kept
        for difference in [*from_cases, *mine]
        if (kept := _only(difference, task.laws)) is not None
    ]
    return found


def _only(difference: Difference, laws: frozenset[Law]) -> Difference | None:
    """The difference as far as it is about these laws."""
    names = set(map(str, laws))
    for seen in difference.seen:
        seen.laws = [law for law in seen.laws if law in names]
    difference.seen = [seen for seen in difference.seen if seen.laws]
    return difference if difference.seen else None


def _case_difference(finder: Finder, stream: Stream, case: Case) -> Difference | None:
    """What differs in a case, at the smallest number of ids a step at which anything does."""
    if stream.stops.regexes:
        return None
    for size in step_sizes_of(case):
        difference = finder.describe(stream, size, 1, stream.origin)
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
