"""Chart of a ``pipeline`` record: ITL and queue, over time for a run, over the batch for a ramp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.pipeline import PipelineDetails, RunFacts, details_of
from detokbench.records.schema import Record
from detokbench.report.charts import COLOURS, caption, figures
from detokbench.report.pipeline_ramp_chart import draw_over_batch, draw_overload, finish
from detokbench.report.units import given

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MS = 1e-3
_LINEAR_TO = 100  # ids: below, the queue's axis is even, above it is logarithmic


def pipeline_figure(record: Record) -> Figure | None:
    """Two or three panels; None where no run has samples."""
    details = details_of(record)
    runs = [run for run in details.runs if run.itl.count]
    if not runs:
        return None
    figure = figures()(figsize=(13, 4.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    if details.prediction is None:
        _draw_distribution(left, runs, details)
        _draw_itl(middle, runs, details)
        _draw_depth(right, runs, details)
    else:
        draw_over_batch(left, runs, details)
        draw_overload(middle, runs, details)
        _draw_depth(right, [run for run in runs if run.of == "depth"] or runs[-1:], details)
    figure.suptitle(f"{caption(record)}\n{_title(details)}", fontsize=8, color="#444444")
    return figure


def _title(details: PipelineDetails) -> str:
    end = "over HTTP" if details.http else "without HTTP"
    return (
        f"{details.topology}, {details.path}, T_step {given(details.t_step_s)} (given), "
        f"k = {details.interval}, {end}"
    )


def _draw_distribution(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    from matplotlib.ticker import LogFormatter

    for run in runs:
        for name, of, colour in (("ITL a token", run.itl, 0), ("gap between chunks", run.gap, 1)):
            xs = [max(value, 1e-6) / _MS for value in of.curve]
            axes.plot(xs, range(len(xs)), color=COLOURS[colour], label=name)
    axes.axvline(details.t_step_s / _MS, color="#555555", linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
    axes.legend(fontsize=8)
    finish(axes, "ms (dashed: T_step)", "per cent at or below", "Gaps at the reader")


def _draw_itl(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    for run in runs:
        points = [(p.t_s, p.itl_s / _MS) for p in run.series if p.itl_s is not None]
        axes.plot(*zip(*points, strict=True), color=COLOURS[0], linewidth=1)
    axes.axhline(details.t_step_s / _MS, color="#555555", linestyle="--", linewidth=1)
    axes.set_ylim(bottom=0)
    finish(axes, "s since the first step", "ms (dashed: T_step)", "ITL over time, sampled streams")


def _draw_depth(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    for number, run in enumerate(sorted(runs, key=lambda run: run.batch)):
        colour = COLOURS[number % len(COLOURS)]
        times = [point.t_s for point in run.series]
        share = "" if not details.live_batch else f" ({run.batch / details.live_batch:.1f} B*)"
        label = f"B = {run.batch}{share}"
        axes.plot(times, [p.undelivered for p in run.series], color=colour, label=label)
        axes.axvline(run.duration_s, color=colour, linestyle=":", linewidth=0.8)
    _queue_axis(axes, max((p.undelivered for run in runs for p in run.series), default=0.0))
    axes.legend(fontsize=8)
    finish(
        axes, "s since the first step (dotted: the engine ends)", "ids emitted and not delivered",
        "Queue depth over time",
    )  # fmt: skip


def _queue_axis(axes: Axes, highest: float) -> None:
    """Even to a hundred ids, logarithmic above, with ticks that can be read."""
    ticks = queue_ticks(highest)
    axes.set_yscale("symlog", linthresh=_LINEAR_TO)
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, max(1.1 * highest, ticks[1]))


def queue_ticks(highest: float) -> list[int]:
    """0, a few up to 100, then powers of ten, with twos and fives where there is room."""
    top = max(highest, 1)
    decades = [10**n for n in range(2, 12) if 10**n <= 2 * top]
    if len(decades) >= 3:
        return [0, 50, *decades]
    fine = [t * 10**n for n in range(2, 12) for t in (1, 2, 5)]
    return [0, 20, 50, *(tick for tick in fine if tick <= 1.1 * top)]
