"""``detokbench show``: the screen of a record, printed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from detokbench.errors import ExitCode

HELP = """\
Print the screen of a record again, from the file alone.

Neither the tokenizer nor the machine that made the record is needed.
"""


def show(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="The .json file of a run.")],
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.records.store import read_record
    from detokbench.report.output import print_record

    print_record(read_record(Path(record)))
    return ExitCode.OK
