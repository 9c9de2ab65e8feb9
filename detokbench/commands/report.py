"""``detokbench report``: records as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from detokbench.errors import ExitCode

HELP = """\
Put records into one HTML page: their tables, charts and readings, and where they come from.

The page needs no network and no other file, so that it can be sent or archived as it is.
"""


def report(
    records: Annotated[
        list[str], typer.Argument(metavar="RECORD…", help="The .json files of runs, of any kind.")
    ],
    out: Annotated[
        str,
        typer.Option("-o", "--out", metavar="FILE", help="The page; never over another file."),
    ] = "report.html",
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.records.store import page_place, write_page
    from detokbench.report.kinds import read_known
    from detokbench.report.page import NamedRecord, make_page

    paths = [Path(name) for name in dict.fromkeys(records)]
    named = [NamedRecord(path.name, read_known(path)) for path in paths]
    place = page_place(out)
    write_page(place, make_page(named))
    typer.echo(str(place))
    return ExitCode.OK
