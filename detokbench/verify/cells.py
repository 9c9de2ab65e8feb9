"""The matrix: one verdict for each path, law and vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from detokbench.paths.protocol import PathClass
from detokbench.records.schema import NotApplicable
from detokbench.records.verify import NO_STREAM, Cell, Growth, Verdict
from detokbench.verify.laws import Law
from detokbench.verify.tally import Tally

_WORST = ("flat", "linear", "worse")


def cells_of(
    paths: Sequence[PathClass],
    laws: Collection[Law],
    tallies: dict[str, Tally],
    not_applicable: dict[str, list[NotApplicable]],
    growth: Sequence[Growth],
) -> Iterator[Cell]:
    """A cell for every combination; those that could not be judged say why."""
    for vocabulary, tally in tallies.items():
        reasons = {entry.path: entry.why for entry in not_applicable.get(vocabulary, [])}
        grown = [g for g in growth if g.vocab == vocabulary]
        for path in paths:
            for law in Law:
                if law in laws:
                    why = reasons.get(path.name, "") or _why_not(path, law)
                    yield _cell(path.name, law, vocabulary, tally, why, grown)


def _why_not(path: PathClass, law: Law) -> str:
    if law is Law.STOPS and path.stops is None:
        return "no way to look for stops belongs to this path"
    if law is Law.WORK and path.is_engine:
        return "the tokenizer calls of an engine's own code are not watched"
    return ""


def _cell(
    path: str, law: Law, vocabulary: str, tally: Tally, why: str, growth: Sequence[Growth]
) -> Cell:
    judged, broken = tally.judged[path, law], tally.broken[path, law]
    verdict: Verdict = "pass"
    if not judged:
        verdict, why = "n/a", why or NO_STREAM
    elif broken:
        verdict = "error" if law is Law.NO_ERROR else "differs"
    return Cell(
        path=path,
        law=str(law),
        vocab=vocabulary,
        verdict=verdict,
        streams=judged,
        broken=broken,
        figure=_figure(path, law, tally, growth) if judged else "",
        why=why if verdict == "n/a" else "",
    )


def _figure(path: str, law: Law, tally: Tally, growth: Sequence[Growth]) -> str:
    if law is Law.HOLD:
        waited = tally.longest_wait.get(path, 0)
        return f"{waited} id" if waited == 1 else f"{waited} ids"
    if law is Law.WORK:
        classes = [g.growth for g in growth if g.path == path]
        return max(classes, key=_WORST.index) if classes else ""
    return ""
