"""Write what the reference records and some commands print into the README, between its markers."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

from rich.console import Console

from detokbench.cli import main
from detokbench.records.store import read_record
from detokbench.report.kinds import kind_of

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "results" / "reference"
BLOCK = re.compile(
    r"<!-- output: (?P<name>[\w-]+) -->\n```text\n.*?```\n<!-- end of output -->\n", re.DOTALL
)
PRINTED = re.compile(
    r"<!-- printed by: (?P<command>.+?) -->\n```text\n.*?```\n<!-- end of output -->\n", re.DOTALL
)
WIDTH = 120


def printed(name: str) -> str:
    """The screen of a reference record."""
    record = read_record(REFERENCE / f"{name}.json")
    out = io.StringIO()
    kind_of(record).print_screen(record, Console(file=out, width=WIDTH))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def with_output(readme: str) -> str:
    """The README with every block between its markers replaced."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- output: {name} -->\n```text\n{printed(name)}```\n<!-- end of output -->\n"

    return PRINTED.sub(command_block, BLOCK.sub(block, readme))


def command_block(match: re.Match[str]) -> str:
    """The same block with what its command prints now."""
    command = match["command"]
    shown = f"$ {command}\n{output_of(command)}"
    return f"<!-- printed by: {command} -->\n```text\n{shown}```\n<!-- end of output -->\n"


def output_of(command: str) -> str:
    """What a command line prints on its standard output, into a pipe."""
    arguments = shlex.split(command)[1:]
    out = io.StringIO()
    with redirect_stdout(out):
        main(arguments)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "".join(line + "\n" for line in lines).strip("\n") + "\n"


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_output(path.read_text(encoding="utf-8")), encoding="utf-8")
