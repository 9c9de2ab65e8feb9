"""What a ``verify`` record says, in a few sentences made from its verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from detokbench.records.schema import Record
from detokbench.records.verify import VerifyDetails, verify_details
from detokbench.report.verify_growth import worst_growth
from detokbench.report.verify_verdicts import broken_laws, vocabularies, was_judged, worst
from detokbench.verify.laws import Law

_MOST = 5
_WRONG_TEXT = (Law.APPEND_ONLY, Law.BYTES, Law.REPLACEMENT)


def read_verify(record: Record) -> list[str]:
    """At most five sentences, the most consequential first."""
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
        _grows(details),
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
    clean = [path for path, laws in broken.items() if not laws]
    if not clean:
        every = "The one path judged" if len(broken) == 1 else f"Each of the {len(broken)} paths"
        return f"{every} breaks a law: no text here can be trusted for every input."
    return f"{listed(clean)} {_s(clean, 'breaks', 'break')} no law in {details.streams:,} streams."


def _raises(broken: Mapping[str, Sequence[str]]) -> str | None:
    paths = _breaking(broken, Law.NO_ERROR)
    if not paths:
        return None
    return (
        f"{listed(paths)} {_s(paths, 'raises', 'raise')} on some ids: an engine that does not catch "
        "that loses the request, and whatever runs beside it."
    )


def _loses_the_end(broken: Mapping[str, Sequence[str]]) -> str | None:
    paths = _breaking(broken, Law.COMPLETE)
    if not paths:
        return None
    return (
        f"{listed(paths)} {_s(paths, 'loses', 'lose')} text at the end of a stream: what is still "
        "held there is never sent."
    )


def _corrupts(details: VerifyDetails, broken: Mapping[str, Sequence[str]]) -> str | None:
    """Paths that corrupt text in every vocabulary; the others have their own sentence."""
    everywhere = [
        path
        for path in broken
        if (places := _places(details, path, _WRONG_TEXT))
        and len(places) == len(_judged_in(details, path))
    ]
    if not everywhere:
        return None
    where = " with every vocabulary" if len(vocabularies(details)) > 1 else ""
    each = [f"{path} ({_named(_WRONG_TEXT, broken[path])})" for path in everywhere]
    return f"{listed(each)} {_s(everywhere, 'corrupts', 'corrupt')} text{where}."


def _by_vocabulary(details: VerifyDetails, broken: Mapping[str, Sequence[str]]) -> str | None:
    """Paths that corrupt text in some vocabularies and not in others."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in broken:
        places = _places(details, path, _WRONG_TEXT)
        if places and len(places) < len(_judged_in(details, path)):
            groups.setdefault(tuple(places), []).append(path)
    if not groups:
        return None
    each = []
    for places, paths in groups.items():
        laws = {law for path in paths for law in broken[path]}
        corrupt = _s(paths, "corrupts", "corrupt")
        named = _named(_WRONG_TEXT, laws)
        each.append(f"{listed(paths)} {corrupt} text with {listed(places)} only ({named})")
    return f"{'; '.join(each)}."


def _grows(details: VerifyDetails) -> str | None:
    growing = [growth for growth in worst_growth(details) if growth.growth != "flat"]
    if not growing:
        return None
    each: dict[str, list[str]] = {}
    for growth in growing:
        each.setdefault(growth.stream, []).append(growth.path)
    listing = "; ".join(f"{listed(paths)} on {stream}" for stream, paths in each.items())
    return f"The work of a step grows with the output of {listing}."


def _rows(broken: Mapping[str, Sequence[str]]) -> str | None:
    paths = _breaking(broken, Law.ROWS)
    if not paths:
        return None
    return (
        f"With {listed(paths)} the text of one request depends on other requests, or on how many "
        "there are."
    )


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


def _s(names: Sequence[str], one: str, several: str) -> str:
    return one if len(names) == 1 else several
