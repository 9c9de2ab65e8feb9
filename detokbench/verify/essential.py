"""Of many differences, those that have to be read."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.records.verify import Difference
from detokbench.verify.kinds import CUT, Kind

_Cover = tuple[str, str, frozenset[str]]
"""A path that breaks a law, by a kind of input."""


def essential(
    differences: Sequence[Difference], vocabularies: Sequence[str]
) -> tuple[list[Difference], int]:
    """About the fewest that show each path breaking each law by each kind of input.

    An input of several odd kinds shows nothing where one with some of them shows the same.
    Those from public reports come first, then the smallest, then by the order of the
    vocabularies. ``also`` of those that are kept names the vocabularies of others like them. Gives
    how many are left out too.
    """
    ordered = sorted(
        differences,
        key=lambda d: (not d.report, _size(d), vocabularies.index(d.input.vocab)),
    )
    shown: set[_Cover] = set()
    kept: list[Difference] = []
    for difference in ordered:
        covers = _covers(difference)
        if not all(_is_shown(cover, shown) for cover in covers):
            shown |= covers
            kept.append(difference)
    for difference in kept:
        difference.also = _vocabularies_like(difference, ordered)
    return kept, len(ordered) - len(kept)


def _is_shown(cover: _Cover, shown: set[_Cover]) -> bool:
    path, law, cause = cover
    return cover in shown or any(other[:2] == (path, law) and other[2] < cause for other in shown)


def _covers(difference: Difference) -> set[_Cover]:
    cause = _cause(difference)
    return {(seen.path, law, cause) for seen in difference.seen for law in seen.laws}


def _cause(difference: Difference) -> frozenset[str]:
    """The kinds of ids in it, all pieces of characters as one; and whether it has stops."""
    cut = set(map(str, CUT))
    kinds = {"cut" if kind in cut else kind for kind in difference.kinds}
    if difference.input.stop:
        kinds.add("stops")
    if Kind.GENUINE in kinds:
        kinds.discard("cut")
    return frozenset(kinds)


def _vocabularies_like(difference: Difference, others: Sequence[Difference]) -> list[str]:
    covers = _covers(difference)
    names = [other.input.vocab for other in others if _covers(other) & covers]
    return [name for name in dict.fromkeys(names) if name != difference.input.vocab]


def _size(difference: Difference) -> tuple[int, int]:
    facts = difference.input
    return len(facts.prompt) + len(facts.output) + 2 * len(facts.stop), facts.ids_per_step or 99
