"""What a ``verify`` record says, in a few sentences made from its verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from detokbench.records.schema import Record
from detokbench.records.verify import VerifyDetails, verify_details
from detokbench.report.verify_growth import worst_growth
from detokbench.report.verify_verdicts import broken_laws, vocabularies, was_judged, worst
from detokbench.verify.laws import Law

_MOST = 6
# From so many paths on they are not named where they are all but so few.
_MANY, _FEW = 5, 2
_WRONG_TEXT = (Law.APPEND_ONLY, Law.BYTES, Law.REPLACEMENT)


def read_verify(record: Record) -> list[str]:
    """At most six sentences, the most consequential first."""
    details = verify_details(record)
    broken = {
        path: broken_laws(details, path) for path in details.paths if was_judged(details, path)
    }
    sentences = [
        _failed(details, broken),
        _clean(details, broken),
        _raises(broken),
        _loses_the_end(broken),
        _corrupts(details, broken),
        _by_vocabulary(details, broken),
        _well_formed(broken),
        _grows(details, broken),
        _rows(broken),
    ]
    return [sentence for sentence in sentences if sentence][:_MOST]


def _failed(details: VerifyDetails, broken: Mapping[str, Sequence[str]]) -> str | None:
    wrong = [path for path in details.required if broken.get(path)]
    if not wrong:
        return None
    each = listed([f"{path} ({', '.join(broken[path])})" for path in wrong])
    return f"The run has failed, since a path that must be right is not: {each}."


def _clean(details: VerifyDetails, broken: Mapping[str, Sequence[str]]) -> str | None:
    if not broken:
        return None
    who = _who([path for path, laws in broken.items() if not laws], broken)
    if who is not None:
        streams = f"{details.streams:,} stream{'' if details.streams == 1 else 's'}"
        return f"{who.words} {who.verb('break')} no law in {streams}."
    every = "The one path judged" if len(broken) == 1 else f"Each of the {len(broken)} paths"
    return f"{every} breaks a law."


def _raises(broken: Mapping[str, Sequence[str]]) -> str | None:
    who = _who(_breaking(broken, Law.NO_ERROR), broken)
    return who and f"{who.words} {who.verb('raise')} on some ids, which an engine must catch."


def _loses_the_end(broken: Mapping[str, Sequence[str]]) -> str | None:
    who = _who(_breaking(broken, Law.COMPLETE), broken)
    return who and (
        f"{who.words} {who.verb('lose')} the end of some texts: what is held back when the ids end "
        "does not come, or comes as U+FFFD."
    )


def _corrupts(details: VerifyDetails, broken: Mapping[str, Sequence[str]]) -> str | None:
    """Paths that corrupt text in every vocabulary; the others have their own sentence."""
    groups: dict[str, list[str]] = {}
    for path, laws in broken.items():
        places = _places(details, path, _WRONG_TEXT)
        if places and len(places) == len(_judged_in(details, path)):
            groups.setdefault(_named(_WRONG_TEXT, laws), []).append(path)
    if not groups:
        return None
    where = " with every vocabulary" if len(vocabularies(details)) > 1 else ""
    each = [
        f"{who.words} {who.verb('corrupt')} text{where} ({laws})"
        for laws, paths in groups.items()
        if (who := _who(paths, broken))
    ]
    return f"{'; '.join(each)}."


def _by_vocabulary(details: VerifyDetails, broken: Mapping[str, Sequence[str]]) -> str | None:
    """Paths that corrupt text in some vocabularies and not in others."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in broken:
        places = _places(details, path, _WRONG_TEXT)
        if places and len(places) < len(_judged_in(details, path)):
            groups.setdefault(tuple(places), []).append(path)
    each = [
        f"{who.words} {who.verb('corrupt')} text with {listed(places)} only "
        f"({_named(_WRONG_TEXT, {law for path in paths for law in broken[path]})})"
        for places, paths in groups.items()
        if (who := _who(paths, broken))
    ]
    return f"{'; '.join(each)}." if each else None


def _well_formed(broken: Mapping[str, Sequence[str]]) -> str | None:
    who = _who(_breaking(broken, Law.ONE_SHOT), broken)
    return who and (
        f"Not malformed text alone: {who.words[0].lower()}{who.words[1:]} {who.verb('give')} some "
        "well-formed text otherwise than one decode of all ids does."
    )


def _grows(details: VerifyDetails, broken: Mapping[str, Sequence[str]]) -> str | None:
    growing = [growth for growth in worst_growth(details) if growth.growth != "flat"]
    groups: dict[str, list[str]] = {}
    for growth in growing:
        groups.setdefault(growth.stream, []).append(growth.path)
    each = [
        f"{who.words} on {stream}"
        for stream, paths in groups.items()
        if (who := _who(paths, broken, first=False))
    ]
    return f"The work of a step grows with the output: {'; '.join(each)}." if each else None


def _rows(broken: Mapping[str, Sequence[str]]) -> str | None:
    who = _who(_breaking(broken, Law.ROWS), broken, first=False)
    return who and (
        f"With {who.words} the text of one request depends on other requests, or on how many "
        "there are."
    )


class _Who(NamedTuple):
    """Some of the paths, as the subject of a sentence."""

    words: str
    is_one: bool

    def verb(self, verb: str) -> str:
        return f"{verb}s" if self.is_one else verb


def _who(paths: Sequence[str], judged: Collection[str], first: bool = True) -> _Who | None:
    """Paths by name, or all but the few that are missing; None of none."""
    others = [path for path in judged if path not in paths]
    if not paths:
        return None
    if len(paths) == 1 or len(judged) < _MANY or len(others) > _FEW:
        return _Who(listed(paths), len(paths) == 1)
    words = f"all paths but {listed(others)}" if others else "every path"
    return _Who(words[0].upper() + words[1:] if first else words, not others)


def _named(laws: Iterable[str], among: Collection[str]) -> str:
    return ", ".join(law for law in laws if law in among)


def _breaking(broken: Mapping[str, Sequence[str]], law: str) -> list[str]:
    return [path for path, laws in broken.items() if law in laws]


def _places(details: VerifyDetails, path: str, laws: Iterable[str]) -> list[str]:
    found = {vocab for law in laws for vocab in worst(details, path, law).broken}
    return [vocab for vocab in vocabularies(details) if vocab in found]


def _judged_in(details: VerifyDetails, path: str) -> Collection[str]:
    return {cell.vocab for cell in details.cells if cell.path == path and cell.verdict != "n/a"}


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, or ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
