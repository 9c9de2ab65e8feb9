"""What the cells of a ``verify`` record come to: the worst that a path did under a law."""

from __future__ import annotations

import re
from typing import NamedTuple

from detokbench.records.verify import Cell, Verdict, VerifyDetails

MARKS: dict[Verdict, str] = {"pass": "✓", "differs": "✗", "error": "!", "n/a": "–"}
BROKEN: tuple[Verdict, ...] = ("error", "differs")
GROWTH = ("flat", "linear", "worse")
"""From the best to the worst."""
_WORST_FIRST: tuple[Verdict, ...] = ("error", "differs", "pass", "n/a")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_LONGEST_FIGURE = 8


class Worst(NamedTuple):
    """A path under a law, over some vocabularies."""

    verdict: Verdict
    broken: list[str]
    """Vocabularies in which the law is broken."""
    judged: int
    """Vocabularies in which it could be judged."""
    figure: str
    """The worst of the figures where the law is broken."""

    @property
    def is_broken(self) -> bool:
        return self.verdict in BROKEN


def vocabularies(details: VerifyDetails) -> list[str]:
    """Vocabularies that paths were judged in, in the order of the record."""
    return list(dict.fromkeys(cell.vocab for cell in details.cells))


def worst(details: VerifyDetails, path: str, law: str) -> Worst:
    """The verdict on a path under a law over all vocabularies: the worst one counts."""
    cells = [cell for cell in details.cells if (cell.path, cell.law) == (path, law)]
    return _worst(cells)


def _worst(cells: list[Cell]) -> Worst:
    seen = {cell.verdict for cell in cells}
    verdict = next((verdict for verdict in _WORST_FIRST if verdict in seen), _WORST_FIRST[-1])
    broken = [cell for cell in cells if cell.verdict in BROKEN]
    figures = [cell.figure for cell in broken if cell.figure]
    return Worst(
        verdict,
        [cell.vocab for cell in broken],
        sum(cell.verdict != "n/a" for cell in cells),
        max(figures, key=_badness, default=""),
    )


def _badness(figure: str) -> tuple[int, float]:
    """Ranks ``worse`` above ``linear``, and ``7 ids`` above ``5 ids``."""
    number = _NUMBER.search(figure)
    rank = GROWTH.index(figure) if figure in GROWTH else 0
    return rank, float(number[0].replace(",", "")) if number else 0.0


def broken_laws(details: VerifyDetails, path: str) -> list[str]:
    """Laws that a path breaks in some vocabulary, in the order of tables."""
    return [law.name for law in details.laws if worst(details, path, law.name).is_broken]


def was_judged(details: VerifyDetails, path: str) -> bool:
    """Whether any law could be judged by what a path did."""
    return any(cell.path == path and cell.verdict != "n/a" for cell in details.cells)


def mark(found: Worst, with_figure: bool) -> str:
    """``✓``; ``✗`` if broken in all vocabularies, ``✗ 2/3`` in two of three; ``✗ 7 ids``."""
    sign = MARKS[found.verdict]
    if not found.is_broken:
        return sign
    if with_figure and found.figure and len(found.figure) <= _LONGEST_FIGURE:
        return f"{sign} {found.figure}"
    in_all = len(found.broken) == found.judged
    return sign if in_all else f"{sign} {len(found.broken)}/{found.judged}"
