"""The record of a run of ``verify``, and the exit code that follows from it."""

from __future__ import annotations

import msgspec

from detokbench import __version__
from detokbench.bench.machine import machine_facts, package_versions
from detokbench.bench.run import Outcome
from detokbench.errors import ExitCode
from detokbench.paths.registry import load_path_class
from detokbench.records.provenance import file_name
from detokbench.records.schema import Record
from detokbench.records.verify import CaseResult, Cell, LawFacts, VerifyDetails, verify_details
from detokbench.verify.cells import cells_of
from detokbench.verify.laws import SAYS, Law
from detokbench.verify.run import Collected, Wanted

_WRONG = {"differs", "error"}


class VerifyOutcome(Outcome):
    """A record whose exit code follows from its required paths."""

    def exit_code(self) -> ExitCode:
        """1 where a required path breaks a law or gets a case wrong, 4 where none judges it."""
        code = super().exit_code()
        details = verify_details(self.record)
        found: dict[str, set[str]] = {path: set() for path in details.required}
        entries: list[Cell | CaseResult] = [*details.cells, *details.cases]
        for entry in entries:
            if entry.path in found:
                found[entry.path].add(entry.verdict)
        if any(not _WRONG.isdisjoint(verdicts) for verdicts in found.values()):
            return ExitCode.FAILED_CHECK
        if code is ExitCode.OK and any(verdicts <= {"n/a"} for verdicts in found.values()):
            return ExitCode.NOTHING_TO_COMPARE
        return code


def record_of(
    wanted: Wanted,
    required: tuple[str, ...],
    collected: Collected,
    created: str,
    command: list[str],
) -> VerifyOutcome:
    """Everything about one run."""
    details = _details(wanted, required, collected)
    record = Record(
        kind="verify",
        created=created,
        command=command,
        detokbench=__version__,
        partial=collected.error is not None,
        scenario={},
        vocabulary={"name": ", ".join(map(file_name, wanted.vocabularies))},
        settings={"seed": wanted.seed, "fuzz": wanted.fuzz, "laws": sorted(wanted.laws)},
        machine=machine_facts(),
        packages=package_versions(),
        warnings=collected.warnings,
        not_applicable=[entry for name in collected.not_applicable.values() for entry in name],
        details=msgspec.to_builtins(details),
    )
    return VerifyOutcome(record, collected.error)


def _details(wanted: Wanted, required: tuple[str, ...], collected: Collected) -> VerifyDetails:
    classes = [load_path_class(name) for name in wanted.paths]
    # Asked for by a path perhaps, shown by name.
    names = {
        asked: facts.name
        for asked, facts in zip(wanted.vocabularies, collected.vocabularies, strict=True)
    }
    tallies = {names[asked]: tally for asked, tally in collected.tallies.items()}
    reasons = {names[asked]: entries for asked, entries in collected.not_applicable.items()}
    cells = cells_of(classes, wanted.laws, tallies, reasons, collected.growth)
    return VerifyDetails(
        laws=[LawFacts(name=str(law), says=SAYS[law]) for law in Law if law in wanted.laws],
        vocabularies=collected.vocabularies,
        paths=list(wanted.paths),
        required=list(required),
        cells=list(cells),
        differences=collected.differences,
        more_differences=collected.left_out,
        growth=collected.growth,
        cases=collected.cases,
        streams=sum(tally.streams for tally in tallies.values()),
        steps=sum(tally.steps for tally in tallies.values()),
        seconds=collected.seconds,
        seed=wanted.seed,
        fuzz=wanted.fuzz,
        failures=[] if collected.error is None else [_why(collected.error)],
    )


def _why(error: BaseException) -> str:
    return str(error) or "interrupted"
