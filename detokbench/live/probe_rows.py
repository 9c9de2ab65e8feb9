"""The flat rows of a ``probe`` record: one a figure, with its mean in each measured request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from detokbench.bench.statistics import summarize
from detokbench.live.probe_asked import Asked
from detokbench.records.probe import MEASURED, RequestFacts
from detokbench.records.schema import Row

_Figure = Literal["ttft", "chunk_gap", "itl"]


def probe_rows(asked: Asked, requests: Sequence[RequestFacts]) -> list[Row]:
    """TTFT, chunk gap and ITL; the median is over requests."""
    measured = [facts for facts in requests if facts.outcome in MEASURED]
    return [
        _row(asked, "ttft", [facts.ttft_s for facts in measured]),
        _row(asked, "chunk_gap", [facts.chunk_gap_s for facts in measured]),
        _row(asked, "itl", [facts.itl_s for facts in measured]),
    ]


def _row(asked: Asked, figure: _Figure, samples: list[float | None]) -> Row:
    values = [value for value in samples if value is not None]
    summary = summarize(values) if values else None
    return Row(
        path="server",
        batch=asked.concurrency,
        metric=figure,
        median=None if summary is None else summary.median,
        ci_low=None if summary is None else summary.ci_low,
        ci_high=None if summary is None else summary.ci_high,
        mad=None if summary is None else summary.mad,
        samples=samples,
        vocab="" if asked.vocabulary is None else asked.vocabulary.name,
    )
