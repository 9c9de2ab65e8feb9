"""Write what the reference record prints into the README, between its markers."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from detokbench.records.store import read_record
from detokbench.report.measure_c_screen import print_measure_c

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "reference" / "measure-c-llama-3.json"
BEGIN, END = "<!-- output -->\n```text\n", "```\n<!-- end of output -->\n"
WIDTH = 120


def printed() -> str:
    """The screen of the reference record."""
    out = io.StringIO()
    print_measure_c(read_record(RECORD), Console(file=out, width=WIDTH))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def with_output(readme: str) -> str:
    """The README with the block between its markers replaced."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + printed() + END + after


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_output(path.read_text(encoding="utf-8")), encoding="utf-8")
