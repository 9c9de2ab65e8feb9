"""Looking rows up in a ``time-step`` record."""

from __future__ import annotations

from typing import NamedTuple

from detokbench.records.schema import Record, Row, Source
from detokbench.records.time_step import Point, details_of

TIMED: tuple[Source, ...] = ("measured", "cpu")
_TABLE_ORDER: tuple[Source, ...] = ("measured", "cpu", "roofline", "derated")


class Entry(NamedTuple):
    """A row and what is known of its point."""

    row: Row
    point: Point


class TimeStepRows:
    """The rows of a record by source, batch and context."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.details = details_of(record.details)
        pairs = zip(record.rows, self.details.points, strict=True)
        self._entries = {
            (row.source, row.batch, row.context): Entry(row, point) for row, point in pairs
        }
        self.batches = sorted({row.batch for row in record.rows})
        self.contexts = sorted({row.context for row in record.rows if row.context is not None})
        present = {row.source for row in record.rows}
        self.sources = [source for source in _TABLE_ORDER if source in present]

    def get(self, source: Source, batch: int, context: int) -> Entry | None:
        return self._entries.get((source, batch, context))

    @property
    def timed_source(self) -> Source | None:
        """The source of what was timed, None for a record on paper."""
        return next((source for source in self.sources if source in TIMED), None)

    def line(self, source: Source, context: int) -> list[tuple[int, Row]]:
        """Batches and rows of one context that fit in memory, in rising order."""
        entries = ((batch, self.get(source, batch, context)) for batch in self.batches)
        return [
            (batch, entry.row)
            for batch, entry in entries
            if entry is not None and entry.point.fits and entry.row.median
        ]

    def timed(self) -> list[Entry]:
        """All that was timed, in the order of the record."""
        return [entry for entry in self._entries.values() if entry.row.source in TIMED]

    def memory_bytes(self, source: Source) -> float:
        """What the points of a source had to fit into: the device's memory, or the sheet's."""
        device = self.details.device
        if source == "measured" and device is not None:
            return float(device["memory_bytes"])
        return self.details.memory_bytes


def gpu_title(gpu: dict[str, object], tp: int) -> str:
    """``NVIDIA H100 SXM 80 GB``, with ``2 ×`` before it where two share the model."""
    return f"{gpu['title']}" if tp == 1 else f"{tp} × {gpu['title']}"
