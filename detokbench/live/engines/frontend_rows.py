"""The flat rows of a ``frontend`` record."""

from __future__ import annotations

from detokbench.records.frontend import FrontendDetails, FrontendRun
from detokbench.records.pipeline import Quantiles
from detokbench.records.schema import Metric, Row


def frontend_rows(details: FrontendDetails, vocabulary: str) -> list[Row]:
    """A value a run, metric, role and statistic (``call``: mean, p50, p99); seconds or ratios."""
    return [row for run in details.runs for row in _rows_of(run, vocabulary)]


def _rows_of(run: FrontendRun, vocabulary: str) -> list[Row]:
    def row(
        metric: Metric,
        value: float | None,
        unit: str = "s",
        role: str | None = None,
        call: str | None = None,
    ) -> Row:
        return Row(
            path=run.engine,
            batch=run.streams,
            metric=metric,
            unit=unit,
            median=value,
            ci_low=None,
            ci_high=None,
            mad=None,
            samples=[value],
            vocab=vocabulary,
            call=call,
            engine=run.engine,
            streams=run.streams,
            t_step=run.t_step_s,
            role=role,
            variant=run.variant,
        )

    rows = [row("cpu_per_token", part.s_per_token, role=part.role) for part in run.roles]
    rows += [
        row("chunks_per_token", run.chunks_per_token, "1"),
        row("stretch", run.stretch, "1"),
        row("itl", run.itl.mean, call="mean"),
    ]
    spread: list[tuple[Metric, Quantiles]] = [
        ("itl", run.itl),
        ("lag", run.lag),
        ("ttft", run.ttft),
    ]
    for metric, of in spread:
        rows += [row(metric, of.p50, call="p50"), row(metric, of.p99, call="p99")]
    return rows
