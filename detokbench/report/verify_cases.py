"""What became of the cases of a ``verify`` record: a summary, and what nobody had foretold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from detokbench.records.verify import CaseResult, VerifyDetails
from detokbench.report.verify_text import filled, plain
from detokbench.report.verify_verdicts import BROKEN

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST_TEXT = 60
_MOST_SURPRISES = 12


def print_cases(details: VerifyDetails, console: Console, limit: int | None) -> None:
    """One line for all cases; below it each result that the case files did not foretell."""
    if not details.cases:
        return
    console.print()
    console.print(_summary(details), highlight=False, markup=False)
    found = _together(surprises(details))
    shown = found if limit is None else found[:_MOST_SURPRISES]
    for results in shown:
        console.print(_surprise(results, console.width), highlight=False, markup=False)
    if len(found) > len(shown):
        line = f"  … and {len(found) - len(shown)} more, in the record."
        console.print(line, highlight=False, markup=False)


def surprises(details: VerifyDetails) -> list[CaseResult]:
    """Results that no case file foretold, those of paths that must be right first."""
    found = [
        result
        for result in details.cases
        if result.verdict != "n/a" and (result.verdict in BROKEN) != result.expected_to_differ
    ]
    return sorted(found, key=lambda result: result.path not in details.required)


def _together(results: Iterable[CaseResult]) -> list[list[CaseResult]]:
    """Results of the same case that are the same but for the path."""
    groups: dict[tuple[object, ...], list[CaseResult]] = {}
    for result in results:
        what = (result.verdict, result.expected_to_differ, result.expected, result.got)
        groups.setdefault((result.case, result.vocab, *what), []).append(result)
    return list(groups.values())


def _summary(details: VerifyDetails) -> str:
    count = len({result.case for result in details.cases})
    parts = [_right(path, details.cases) for path in details.required if path in details.paths]
    known = [r for r in details.cases if r.expected_to_differ and r.verdict != "n/a"]
    if known:
        seen = sum(result.verdict in BROKEN for result in known)
        parts.append(f"known differences seen: {seen} of {len(known)}")
    unknown = sum(not result.expected_to_differ for result in surprises(details))
    parts.append(f"not foretold: {unknown or 'none'}")
    return f"{count:,} case{'' if count == 1 else 's'}: {'; '.join(parts)}."


def _right(path: str, results: Iterable[CaseResult]) -> str:
    judged = [result for result in results if result.path == path and result.verdict != "n/a"]
    wrong = _cases(result for result in judged if result.verdict in BROKEN)
    if not judged:
        return f"{path} not judged"
    if not wrong:
        return f"{path} right in all"
    return f"{path} WRONG in {len(wrong)} of {len(_cases(judged))}"


def _cases(results: Iterable[CaseResult]) -> Sequence[str]:
    return list(dict.fromkeys(result.case for result in results))


def _surprise(results: Sequence[CaseResult], width: int) -> str:
    result = results[0]
    paths = ", ".join(one.path for one in results)
    several = len(results) > 1
    report = f" ({result.report})" if result.report else ""
    words = plain(f"{result.case}{report} on {result.vocab}: {paths}").split(" ")
    if result.expected_to_differ:
        verb = "are" if several else "is"
        words += f"{verb} right, and named in [case.differ]".split(" ")
    else:
        verb = "raise" if result.verdict == "error" else "differ"
        words += f"{verb}{'' if several else 's'}, not named in [case.differ]:".split(" ")
        most = min(_LONGEST_TEXT, width - len("    expected ,"))
        if result.expected:
            words.append(f"expected {plain(result.expected, most)}, got")
        words.append(plain(result.got, most))
    return filled(words, width, "  ", "    ")
