"""``DecodeStream.step`` by ``measure-c`` and by pyperf, on the same loop and ids, in turn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import pyperf

from detokbench.records.store import read_record

BOUND = 0.03
ROUNDS = 5
BATCH = 32


def ours_s(folder: Path, number: int) -> list[float]:
    """One value a process, seconds a call."""
    out = folder / f"ours-{number}.json"
    run("-m", "detokbench", "measure-c", "--paths", "fast", "--batch", str(BATCH), "--no-chart",
        "--out", str(out))  # fmt: skip
    rows = read_record(out).rows
    call = next(row for row in rows if row.metric == "call" and row.path == "fast")
    return [value for value in call.samples if value is not None]


def pyperfs_s(folder: Path, number: int) -> list[float]:
    """The median of each of pyperf's processes, seconds a call."""
    out = folder / f"pyperf-{number}.json"
    run(str(Path(__file__).with_name("pyperf_step.py")), "--output", str(out), "--quiet")
    benchmark = pyperf.BenchmarkSuite.load(str(out)).get_benchmarks()[0]
    return [median(run.values) for run in benchmark.get_runs() if run.values]


def run(*arguments: str) -> None:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([sys.executable, *arguments], check=True, **quiet)


def main() -> int:
    pairs: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(ROUNDS):
            ours = median(ours_s(Path(name), number))
            theirs = median(pyperfs_s(Path(name), number))
            pairs.append((ours, theirs))
            print(f"measure-c {ours * 1e6:.3f} µs, pyperf {theirs * 1e6:.3f} µs", flush=True)
    difference = median(ours / theirs for ours, theirs in pairs) - 1
    print(f"DecodeStream.step: median difference in {ROUNDS} turns {100 * difference:+.1f} %")
    return 0 if abs(difference) <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
