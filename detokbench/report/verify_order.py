"""Which differences come first, and which paths made the same mistake."""

from __future__ import annotations

from typing import NamedTuple

from detokbench.records.verify import Difference, Seen, VerifyDetails


class Outcome(NamedTuple):
    """The same mistake, by all paths that made it."""

    paths: list[str]
    seen: Seen


def ordered(details: VerifyDetails) -> list[Difference]:
    """Those of paths that must be right first, then what shows the most that is not shown yet.

    What can be shown is a path that breaks a law, so that the first few differences give as many
    marks of the matrix as they can. Among equals those of most paths come first, then those that
    reproduce a public report, then the shorter.
    """
    required = set(details.required)
    left = sorted(details.differences, key=lambda difference: _rank(difference, required))
    found: list[Difference] = []
    shown: set[tuple[str, str]] = set()
    while left:
        first = _rank(left[0], required)[0]
        peers = [one for one in left if _rank(one, required)[0] == first]
        best = max(peers, key=lambda one: len(_marks(one) - shown))
        if not _marks(best) - shown:  # nothing new to show by any of them: as they are sorted
            found += peers
            left = left[len(peers) :]
            continue
        found.append(best)
        shown |= _marks(best)
        left.remove(best)
    return found


def _rank(difference: Difference, required: set[str]) -> tuple[bool, int, bool, int]:
    paths = {seen.path for seen in difference.seen}
    given = difference.input
    size = len(given.prompt) + len(given.output)
    return not paths & required, -len(paths), not (difference.report or difference.like), size


def _marks(difference: Difference) -> set[tuple[str, str]]:
    return {(seen.path, law) for seen in difference.seen for law in seen.laws}


def outcomes(difference: Difference) -> list[Outcome]:
    """What paths made of the input, those that agree in everything together."""
    found: list[Outcome] = []
    for seen in difference.seen:
        same = next((one for one in found if _is_same(one.seen, seen)), None)
        if same is None:
            found.append(Outcome([seen.path], seen))
        else:
            same.paths.append(seen.path)
    return found


def _is_same(one: Seen, other: Seen) -> bool:
    names = ("laws", "step", "expected", "got", "text", "error", "counted")
    return all(getattr(one, name) == getattr(other, name) for name in names)
