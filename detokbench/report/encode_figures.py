"""Looking figures up in an ``encode`` record."""

from __future__ import annotations

from detokbench.model.admission import length_that_blocks
from detokbench.records.encode import ArrivalCell, StallCell, details_of
from detokbench.records.schema import Metric, Record, Row

GROWING_PATH = "fast"
"""The path whose first token costs the more the longer the prompt is."""
_LEAST_S = 1e-6
"""Less cannot be told on a loop: a step less an ordinary one may come out below zero."""


class EncodeFigures:
    """The rows and cells of a record by what they are of."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.details = details_of(record)
        self._rows = {
            (row.path, row.metric, row.batch, row.threads, row.prompt_len): row
            for row in record.rows
        }
        self.calls = _names(record, "encode")
        self.list_calls = _names(record, "encode_batch")

    def one(self, call: str, length: int) -> Row | None:
        """One prompt a call."""
        return self._rows.get((call, "encode", 1, None, length))

    def many(self, call: str, batch: int, length: int, threads: int) -> Row | None:
        """Several prompts a call; the value is for each of them."""
        return self._rows.get((call, "encode_batch", batch, threads, length))

    def batched(self) -> list[tuple[int, int]]:
        """The batches and lengths that were timed together."""
        rows = (row for row in self.record.rows if row.metric == "encode_batch")
        return sorted({(row.batch, row.prompt_len) for row in rows if row.prompt_len})

    def ids(self, length: int) -> float:
        """The ids that texts of a nominal length encode to."""
        return next((p.mean_ids for p in self.details.prompts if p.length == length), length)

    def streams(self) -> list[tuple[int, float]]:
        """Length and rate of each stream of arrivals."""
        return list(dict.fromkeys((cell.length, cell.rate) for cell in self.details.arrivals))

    def arrival(self, way: str, length: int, rate: float) -> ArrivalCell | None:
        return next(
            (
                cell
                for cell in self.details.arrivals
                if (cell.way, cell.length, cell.rate) == (way, length, rate)
            ),
            None,
        )

    def stalls(self, path: str) -> list[StallCell]:
        """By rising length."""
        return [cell for cell in self.details.stalls if cell.path == path]

    def stalling_length(self) -> float | None:
        """From how many ids on an admission blocked the loop for longer than a T_step.

        By the measured medians, and between two lengths by a power of the length. 0 where the
        shortest did, None where none did.
        """
        points = [(c.length, max(c.blocked_s, _LEAST_S)) for c in self.stalls(GROWING_PATH)]
        return length_that_blocks(points, self.details.t_step_s)


def _names(record: Record, metric: Metric) -> list[str]:
    return list(dict.fromkeys(row.path for row in record.rows if row.metric == metric))
