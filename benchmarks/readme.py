"""Write what the reference records print into the README, between its markers."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from detokbench.records.store import read_record
from detokbench.report.kinds import kind_of

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "results" / "reference"
BLOCK = re.compile(
    r"<!-- output: (?P<name>[\w-]+) -->\n```text\n.*?```\n<!-- end of output -->\n", re.DOTALL
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

    return BLOCK.sub(block, readme)


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_output(path.read_text(encoding="utf-8")), encoding="utf-8")
