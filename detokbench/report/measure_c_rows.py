"""Looking rows up in a ``measure-c`` record."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from detokbench.records.schema import Metric, Record, Row

MAIN_BATCH = 32


class Rows:
    """The rows of a record by what they measure."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._rows = {
            (row.path, row.metric, row.batch, row.threads, self._prompt(row)): row
            for row in record.rows
        }
        self.batches = sorted({row.batch for row in record.rows if row.metric == "per_token"})
        self.prompt_lens = sorted(
            {row.prompt_len for row in record.rows if row.metric == "admit" and row.prompt_len}
        )

    @staticmethod
    def _prompt(row: Row) -> int | None:
        return row.prompt_len if row.metric in {"admit", "first_token"} else None

    def get(
        self,
        path: str,
        metric: Metric,
        batch: int,
        threads: int | None = None,
        prompt_len: int | None = None,
    ) -> Row | None:
        return self._rows.get((path, metric, batch, threads, prompt_len))

    @property
    def main_batch(self) -> int | None:
        """The batch that the ratios are shown for: 32, or the nearest measured above or below."""
        if not self.batches:
            return None
        return min(self.batches, key=lambda batch: (abs(batch - MAIN_BATCH), batch))

    def timed_paths(self) -> list[tuple[str, int | None]]:
        """Paths with their thread counts, in the order of the record."""
        pairs = [(row.path, row.threads) for row in self.record.rows if row.metric == "per_token"]
        return list(dict.fromkeys(pairs))

    def right_paths(self) -> list[tuple[str, int | None]]:
        """The timed paths that gave the right text."""
        wrong = {result.path for result in self.record.gate if result.verdict != "pass"}
        return [pair for pair in self.timed_paths() if pair[0] not in wrong]

    def first_token_s(self, path: str, prompt_len: int) -> float | None:
        """Admission and first token together: median over processes of their sum, in seconds."""
        admit = self.get(path, "admit", 1, None, prompt_len)
        first = self.get(path, "first_token", 1, None, prompt_len)
        if admit is None or first is None:
            return None
        return _median_sum(admit.samples, first.samples)


def label(path: str, threads: int | None) -> str:
    """How tables and charts name a path: with its threads where it has any."""
    if threads is None:
        return path
    return f"{path} ({threads} thread{'' if threads == 1 else 's'})"


def _median_sum(a: Sequence[float | None], b: Sequence[float | None]) -> float | None:
    sums = [x + y for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return median(sums) if sums else None
