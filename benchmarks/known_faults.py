"""Print the shipped cases as a table in Markdown: what goes wrong, where reported, who does it.

Cases that stand one after the other with the same report share a line: the words are the first's,
the paths are those of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby

from detokbench.paths.registry import load_path_class, path_names
from detokbench.verify.case_results import check_case
from detokbench.verify.stream import Runner
from detokbench.vocab.registry import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case, shipped_cases

_BROKEN = {"differs", "error"}
_OWN = "found by detokbench"
_TOGETHER = {
    "SGLang's": ({"batch-decode", "row-decode"}, {"rust-batch"}),
    "slow": ({"slow"}, {"slow-uncached"}),
}
"""A name for paths that do the same: those that apply everywhere, and those that may not."""


def table() -> str:
    """The table, its head included; ends in a line break."""
    lines = [
        "| case | what is tried | report | who differs, and with which vocabulary |",
        "|---|---|---|---|",
    ]
    for report, group in groupby(shipped_cases(), _group):
        cases = list(group)
        shown = "†" if report.startswith(_OWN) else report
        cells = (_names(cases), _title(cases[0]), shown, _who(cases))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _group(case: Case) -> str:
    """The report; what nobody has reported stands alone, but for its variants."""
    if case.report != _OWN:
        return f"{case.report}"
    return f"{_OWN}: {re.sub('-(spm|llama|tekken)$', '', case.name)}"


def _names(cases: Sequence[Case]) -> str:
    """A1, -emoji, -tab: variants by what they add."""
    first = cases[0].name
    stem = first.partition("-")[0] if first[1:2].isdigit() else first
    rest = [
        name.removeprefix(stem) if name.startswith(f"{stem}-") else name
        for name in (case.name for case in cases[1:])
    ]
    return ", ".join([first, *rest])


def _title(case: Case) -> str:
    """Markdown would take a bar for the end of a cell, and a tag for a tag."""
    return case.title.replace("|", "\\|").replace("<", "\\<")


def _who(cases: Sequence[Case]) -> str:
    by_vocabulary: dict[str, set[str]] = {}
    for case in cases:
        by_vocabulary.setdefault(case.vocabulary, set()).update(differing(case))
    said: dict[str, list[str]] = {}
    for vocabulary, paths in by_vocabulary.items():
        if paths:
            words = ", ".join(f"`{w}`" if w in path_names() else w for w in _words(paths))
            said.setdefault(words, []).append(vocabulary)
    return "; ".join(f"{words} ({', '.join(names)})" for words, names in said.items()) or "nobody"


def _words(paths: set[str]) -> Iterator[str]:
    said: dict[str, str] = {}
    for name, (always, sometimes) in _TOGETHER.items():
        if always <= paths:
            said |= dict.fromkeys(always | sometimes, name)
    yield from dict.fromkeys(said.get(path, path) for path in path_names() if path in paths)


def differing(case: Case) -> list[str]:
    """The paths that do not give what a case expects."""
    on = _vocabulary(case.vocabulary)
    classes = [load_path_class(name) for name in path_names()]
    runners = [Runner(path, on) for path in classes if path.why_not(on) is None]
    results = [check_case(case, runner, on) for runner in runners]
    return [result.path for result in results if result.verdict in _BROKEN]


@cache
def _vocabulary(name: str) -> Vocabulary:
    return load_vocabulary(name)


if __name__ == "__main__":
    print(table(), end="")
