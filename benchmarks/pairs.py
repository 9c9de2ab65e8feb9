"""Do two runs one after the other agree? Ten pairs of ``measure-c``, ratios to ``fast``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from detokbench.records.schema import Record, Row
from detokbench.records.store import read_record

PAIRS = 10
NEEDED = 9
BOUND = 0.03
FEWEST_ROWS = 32


def run(folder: Path, name: str) -> Record:
    out = folder / f"{name}.json"
    subprocess.run(
        [sys.executable, "-m", "detokbench", "measure-c", "--no-chart", "--out", str(out)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return read_record(out)


def ratios(record: Record) -> dict[tuple[str, int, int | None], Row]:
    return {
        (row.path, row.batch, row.threads): row
        for row in record.rows
        if row.metric == "per_token" and row.batch >= FEWEST_ROWS and row.ratio_to_fast
    }


def agree(a: Row, b: Row) -> bool:
    """Within the bound, or with intervals that overlap."""
    assert a.ratio_to_fast and b.ratio_to_fast
    if abs(a.ratio_to_fast / b.ratio_to_fast - 1) <= BOUND:
        return True
    assert a.ratio_ci_low and a.ratio_ci_high and b.ratio_ci_low and b.ratio_ci_high
    return a.ratio_ci_low <= b.ratio_ci_high and b.ratio_ci_low <= a.ratio_ci_high


def main() -> int:
    agreeing = 0
    with tempfile.TemporaryDirectory() as name:
        for number in range(PAIRS):
            first = ratios(run(Path(name), f"{number}a"))
            second = ratios(run(Path(name), f"{number}b"))
            apart = [key for key in first if not agree(first[key], second[key])]
            agreeing += not apart
            shown = ", ".join(
                f"{path} B={batch} {first[key].ratio_to_fast:.3g} and "
                f"{second[key].ratio_to_fast:.3g}"
                for key in apart
                for path, batch, _ in [key]
            )
            print(f"pair {number + 1}: {shown or 'all ratios agree'}", flush=True)
    print(f"{agreeing} of {PAIRS} pairs agree")
    return 0 if agreeing >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
