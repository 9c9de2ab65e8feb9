"""``detokbench verify``: which paths give the right text, and on what input the others do not."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from detokbench.commands.options import ChartOption, JsonOption, OutOption, TrustOption
from detokbench.grammar import parse_choice, parse_count

HELP = """\
Stream texts and cases through every path and check what they make of them, law by law.

A path must not lose, change or invent a character, whatever the ids, their number a step and the
rows beside it. What breaks a law is shown with the smallest input that does. What engines' paths
are known to do is reported; the exit code is 1 only where a path that claims to be right is not.
"""


def verify(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Paths to check.  [default: all installed]"),
    ] = None,
    vocab: Annotated[
        list[str] | None,
        typer.Option(
            "--vocab",
            metavar="NAME|PATH|HUB-ID",
            help="Vocabulary; may be given several times.  [default: all that are shipped]",
        ),
    ] = None,
    cases: Annotated[
        list[str] | None,
        typer.Option(
            "--cases",
            metavar="FILE",
            help="Cases of yours, in place of the shipped texts and cases; may be given several "
            "times.",
        ),
    ] = None,
    fuzz: Annotated[
        str | None,
        typer.Option(
            "--fuzz",
            metavar="N",
            help="N random streams, in place of the shipped texts and cases.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="S", help="Which random streams.")
    ] = 0,
    laws: Annotated[
        str | None,
        typer.Option("--laws", metavar="LIST", help="Only these laws, with commas."),
    ] = None,
    require: Annotated[
        str | None,
        typer.Option(
            "--require",
            metavar="LIST",
            help="Paths that must keep every law, beside byte-table: else the exit code is 1; 4 "
            "where nothing judges one of them.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, max=1024, metavar="N", help="Processes.  [default: the CPUs]"
        ),
    ] = None,
    all_differences: Annotated[
        bool, typer.Option("--all", help="Show all differences, not only the first.")
    ] = False,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
    trust_remote_code: TrustOption = False,
) -> int:
    from detokbench.paths.registry import check_path_names, path_names
    from detokbench.records.provenance import command_line, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.verify.laws import Law
    from detokbench.verify.record import record_of
    from detokbench.verify.run import run_tasks
    from detokbench.verify.wanted import required_paths, wanted_from

    names = check_path_names(",".join(paths), "PATH") if paths else path_names()
    given_laws = [] if laws is None else laws.split(",")
    required = required_paths(
        names, check_path_names(require, "--require") if require is not None else []
    )
    wanted = wanted_from(
        paths=tuple(names),
        vocabularies=vocab or [],
        case_files=cases or [],
        fuzz=None if fuzz is None else parse_count(fuzz, "--fuzz"),
        laws=[parse_choice(law.strip(), list(Law), "--laws") for law in given_laws],
        seed=seed,
        trust_remote_code=trust_remote_code,
    )
    created = utc_now()
    place = place_for("verify", "paths", created, out)
    with progress_bar() as progress:
        collected = run_tasks(wanted, jobs, progress)
    outcome = record_of(wanted, required, collected, created, command_line(sys.argv))
    keep_record(outcome.record, place, as_json=json, chart=chart, everything=all_differences)
    return outcome.exit_code()
