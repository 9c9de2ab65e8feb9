"""The flat rows of a ``pipeline`` record: a value a run and batch, with where it comes from."""

from __future__ import annotations

from detokbench.records.pipeline import PipelineDetails, RunFacts
from detokbench.records.schema import Metric, Row


def pipeline_rows(details: PipelineDetails, vocabulary: str) -> list[Row]:
    """ITL (mean), chunk gap (median), chunks a token and lag of each run; the predicted parts."""

    def row(batch: int, metric: Metric, value: float | None, unit: str, call: str) -> Row:
        return Row(
            path=details.path,
            batch=batch,
            metric=metric,
            unit=unit,
            median=value,
            ci_low=None,
            ci_high=None,
            mad=None,
            samples=[value],
            vocab=vocabulary,
            stream_interval=details.interval,
            call=call or None,
        )

    def rows_of(run: RunFacts) -> list[Row]:
        return [
            row(run.batch, "itl", run.itl.mean, "s", ""),
            row(run.batch, "chunk_gap", run.gap.p50, "s", ""),
            row(run.batch, "chunks_per_token", run.chunks_per_token, "1", ""),
            row(run.batch, "lag", run.lag_s_per_s, "s/s", ""),
        ]

    rows = [made for run in details.runs for made in rows_of(run)]
    if details.prediction is not None:
        rows += [
            row(part.batch, "host_part", part.seconds, "s", f"{part.process}: {part.part}")
            for part in details.prediction.parts
        ]
    return rows
