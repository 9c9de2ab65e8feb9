"""``detokbench show``: the screen of a record, printed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from detokbench.errors import ExitCode, usage_error

HELP = """\
Print the screen of a record again, from the file alone.

Neither the tokenizer nor the machine that made the record is needed.
"""


def show(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="The .json file of a run.")],
    check_model: Annotated[
        bool,
        typer.Option("--check-model", help="Of a sweep: how true the amortised model is to it."),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Of verify: every difference and surprise, not the first.")
    ] = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.report.kinds import read_known, shown_from
    from detokbench.report.output import print_record

    path = Path(record)
    loaded = read_known(path)
    if check_model and loaded.kind != "sweep":
        raise usage_error(f"--check-model: {path.name} is a record of {loaded.kind}, not sweep")
    if everything and loaded.kind != "verify":
        raise usage_error(f"--all: {path.name} is a record of {loaded.kind}, not verify")
    with shown_from(path):
        print_record(loaded, check_model=check_model, everything=everything)
    return ExitCode.OK
