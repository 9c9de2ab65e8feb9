"""One screen of a ``verify`` record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detokbench.records.schema import Record
from detokbench.records.verify import VerifyDetails, verify_details
from detokbench.report.units import duration
from detokbench.report.verify_cases import print_cases
from detokbench.report.verify_differences import print_differences
from detokbench.report.verify_growth import print_growth
from detokbench.report.verify_matrix import print_matrix
from detokbench.report.verify_reading import read_verify
from detokbench.report.verify_text import plain
from detokbench.report.verify_verdicts import BROKEN, broken_laws, vocabularies, was_judged, worst

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MOST_DIFFERENCES = 8


def print_verify(record: Record, console: Console, limit: int | None = MOST_DIFFERENCES) -> None:
    """Heading, matrix, differences (``limit`` of them, None for all), cases, growth, meaning."""
    details = verify_details(record)
    for line in _heading(record, details):
        console.print(line, highlight=False)
    console.print()
    print_matrix(details, console)
    console.print()
    for path in details.required:
        console.print(_required(path, details), highlight=False, markup=False)
    print_differences(details, console, limit)
    print_cases(details, console, limit)
    print_growth(details, console)
    console.print()
    for sentence in read_verify(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in _warnings(record, details):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(record: Record, details: VerifyDetails) -> Iterator[Text]:
    from rich.text import Text

    paths, laws = len(details.paths), len(details.laws)
    versions = [f"{name} {record.packages[name]}" for name in ("tokenizers", "transformers")]
    what = [
        "verify",
        f"{_number(paths, 'path')}, {_number(laws, 'law')}",
        ", ".join(vocabularies(details)) or "no vocabulary",
        *versions,
    ]
    fuzz = f", {details.fuzz:,} of them random" if details.fuzz else ""
    run = [
        f"{_number(details.streams, 'stream')}{fuzz}, {details.steps:,} steps",
        duration(details.seconds),
        f"seed {details.seed}",
    ]
    machine = record.machine
    where = [
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs",
        str(machine["python"]),
        f"run {record.created}",
    ]
    title = Text(" · ".join(what))
    title.stylize("bold", 0, len("verify"))
    yield title
    yield Text(" · ".join([*run, *where]))


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _required(path: str, details: VerifyDetails) -> str:
    """Whether a path that must be right is."""
    if not was_judged(details, path):
        return f"Required: {path} was not judged."
    laws = broken_laws(details, path)
    if not laws:
        found = [worst(details, path, law.name) for law in details.laws]
        kept = sum(entry.verdict == "pass" for entry in found)
        which = "all " if kept == len(found) > 1 else ""
        apply = "" if kept == len(found) else ", all that apply,"
        laws_kept = f"{which}{_number(kept, 'law')}{apply}"
        kept_laws = f"Required: {path} keeps {laws_kept} in {_number(details.streams, 'stream')}"
        wrong = {c.case for c in details.cases if c.path == path and c.verdict in BROKEN}
        if not wrong:
            return f"{kept_laws}."
        return (
            f"{kept_laws}, and FAILED: {_number(len(wrong), 'case')} expected something else; the "
            "right text below is what the bytes of the ids spell, so look at the case too."
        )
    each = "; ".join(f"{law} ({_counts(details, path, law)})" for law in laws)
    return f"Required: {path} FAILED: {each}."


def _counts(details: VerifyDetails, path: str, law: str) -> str:
    """In how many streams of which vocabularies a path breaks a law."""
    cells = [cell for cell in details.cells if (cell.path, cell.law) == (path, law)]
    return ", ".join(
        f"{cell.vocab}: {cell.broken:,} of {cell.streams:,}" for cell in cells if cell.broken
    )


def _warnings(record: Record, details: VerifyDetails) -> list[str]:
    warnings = list(record.warnings)
    warnings += [f"not finished: {plain(failure)}" for failure in details.failures]
    if record.partial:
        warnings.append("partial: the run ended early, and only what had run by then is in it")
    return warnings
