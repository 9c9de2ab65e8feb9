"""What stands below the matrix of a ``verify`` record: marks, laws, and what does not apply."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.records.verify import NO_STREAM, Cell, VerifyDetails
from detokbench.report.verify_text import filled, plain
from detokbench.report.verify_verdicts import MARKS, vocabularies, worst

_MOST_REASONS = 6


def legend(details: VerifyDetails, width: int) -> list[str]:
    """The marks, each law that something breaks, the names of the others, and what is n/a."""
    found = {
        law.name: [worst(details, path, law.name) for path in details.paths] for law in details.laws
    }
    broken = {name for name, entries in found.items() if any(e.is_broken for e in entries)}
    judged = {name for name, entries in found.items() if any(e.judged for e in entries)}
    indent = 4 + max((len(name) for name in broken), default=0)
    laws = [
        filled(law.says.split(), width, f"  {law.name}".ljust(indent), " " * indent)
        for law in details.laws
        if law.name in broken
    ]
    lines = [" · ".join(_mark_words(details)), *(["\n".join(laws)] if laws else [])]
    lines += _names("Broken by none:", [n for n in found if n in judged - broken])
    lines += _names("Judged by nothing:", [n for n in found if n not in judged])
    return [*lines, *_reasons(details)]


def _mark_words(details: VerifyDetails) -> list[str]:
    count = len(vocabularies(details))
    words = ["✓ kept", "✗ broken", "! raised", "– does not apply"]
    if count > 1:
        words.append(f"✗ 1/{count} broken with 1 of {count} vocabularies")
    if set(details.required) & set(details.paths):
        words.append("* must be right")
    return words


def _names(title: str, names: Sequence[str]) -> list[str]:
    return [f"{title} {', '.join(names)}."] if names else []


def _reasons(details: VerifyDetails) -> list[str]:
    """Why paths or laws do not apply, a line for each reason."""
    judged = {(cell.path, cell.law) for cell in details.cells if cell.verdict != "n/a"}
    by_law: dict[tuple[str, str], list[Cell]] = {}
    for cell in details.cells:
        known_elsewhere = cell.why == NO_STREAM and (cell.path, cell.law) in judged
        if cell.verdict == "n/a" and cell.why and not known_elsewhere:
            by_law.setdefault((cell.why, cell.law), []).append(cell)
    # Laws that do not apply to the same paths in the same places share a line.
    groups: dict[tuple[str, frozenset[tuple[str, str]]], list[Cell]] = {}
    for (why, _), cells in by_law.items():
        where = frozenset((cell.path, cell.vocab) for cell in cells)
        groups.setdefault((why, where), []).extend(cells)
    lines = [_reason(details, why, cells) for (why, _), cells in groups.items()]
    hidden = len(lines) - _MOST_REASONS
    if hidden <= 0:
        return lines
    return [*lines[:_MOST_REASONS], f"{MARKS['n/a']} for {hidden} more reasons, in the record."]


def _reason(details: VerifyDetails, why: str, cells: Sequence[Cell]) -> str:
    """``– stops of rust-batch, row-decode on llama-3: why``."""
    paths, laws, places = (
        list(dict.fromkeys(names))
        for names in zip(*((cell.path, cell.law, cell.vocab) for cell in cells), strict=True)
    )
    what = ", ".join(paths) if len(paths) < len(details.paths) else "all paths"
    if len(laws) < len(details.laws):
        what = f"{', '.join(laws)} of {what}"
    if len(places) < len(vocabularies(details)):
        what += f" on {', '.join(places)}"
    return f"{MARKS['n/a']} {what}: {plain(why)}"
