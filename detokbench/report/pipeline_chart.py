"""Chart of a ``pipeline`` record: ITL and queue, over time for a run, over the batch for a ramp."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from detokbench.records.pipeline import PipelineDetails, RunFacts, details_of
from detokbench.records.schema import Record
from detokbench.report.charts import COLOURS, caption, figures
from detokbench.report.pipeline_model import host_at, merges, overload_at
from detokbench.report.units import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MS = 1e-3
_ROOM_FOR_LEGEND = 1.45
Point = tuple[float, float]


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
        _draw_over_batch(left, runs, details)
        _draw_overload(middle, runs, details)
        _draw_depth(right, [run for run in runs if run.of == "depth"] or runs[-1:], details)
    figure.suptitle(f"{caption(record)}\n{_title(details)}", fontsize=8, color="#444444")
    return figure


def _title(details: PipelineDetails) -> str:
    end = "over HTTP" if details.http else "without HTTP"
    return (
        f"{details.topology}, {details.path}, T_step {details.t_step_s / _MS:g} ms (given), "
        f"k = {details.interval}, {end}"
    )


def _finish(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def _draw_distribution(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    for run in runs:
        for name, of, colour in (("ITL a token", run.itl, 0), ("gap between chunks", run.gap, 1)):
            xs = [max(value, 1e-6) / _MS for value in of.curve]
            axes.plot(xs, range(len(xs)), color=COLOURS[colour], label=name)
    axes.axvline(details.t_step_s / _MS, color="#555555", linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=8)
    _finish(axes, "ms (dashed: T_step)", "per cent at or below", "Gaps at the reader")


def _draw_itl(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    for run in runs:
        points = [(p.t_s, p.itl_s / _MS) for p in run.series if p.itl_s is not None]
        axes.plot(*zip(*points, strict=True), color=COLOURS[0], linewidth=1)
    axes.axhline(details.t_step_s / _MS, color="#555555", linestyle="--", linewidth=1)
    axes.set_ylim(bottom=0)
    _finish(axes, "s since the first step", "ms (dashed: T_step)", "ITL over time, sampled streams")


def _draw_depth(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    for number, run in enumerate(sorted(runs, key=lambda run: run.batch)):
        colour = COLOURS[number % len(COLOURS)]
        times = [point.t_s for point in run.series]
        share = "" if not details.live_batch else f" ({run.batch / details.live_batch:.1f} B*)"
        label = f"B = {run.batch}{share}"
        axes.plot(times, [p.undelivered for p in run.series], color=colour, label=label)
        axes.axvline(run.duration_s, color=colour, linestyle=":", linewidth=0.8)
    axes.set_yscale("symlog", linthresh=100)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    _finish(
        axes, "s since the first step (dotted: the engine ends)", "ids emitted and not delivered",
        "Queue depth over time",
    )  # fmt: skip


def _live(runs: list[RunFacts], read: Callable[[RunFacts], float | None]) -> list[Point]:
    """(batch, median over the runs at it) for the runs that have a value."""
    found: dict[int, list[float]] = {}
    for run in runs:
        got = read(run)
        if got is not None:
            found.setdefault(run.batch, []).append(got)
    return sorted((batch, median(values)) for batch, values in found.items())


def _batches(details: PipelineDetails, runs: list[RunFacts]) -> list[int]:
    low, high = min(run.batch for run in runs), max(run.batch for run in runs)
    return [round(low * (high / low) ** (i / 60)) for i in range(61)] if high > low else [low]


def _draw_over_batch(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    prediction = details.prediction
    assert prediction is not None
    batches = _batches(details, runs)
    host = [host_at(prediction, batch) / _MS for batch in batches]
    predicted = [overload_at(details, prediction, batch).itl_s / _MS for batch in batches]
    axes.plot(batches, host, color="#888888", linewidth=1, label="host a step, predicted")
    axes.plot(batches, predicted, color=COLOURS[0], label="ITL, predicted")
    points = [(batch, value / _MS) for batch, value in _live(runs, lambda run: run.itl.mean)]
    axes.plot(*zip(*points, strict=True), "o", color=COLOURS[1], label="ITL, live (mean)")
    _batch_axis(axes, details, runs)
    highest = max([*host, *predicted, *(itl for _, itl in points)])
    axes.set_ylim(0, _ROOM_FOR_LEGEND * highest)
    axes.legend(fontsize=8, loc="upper left")
    _finish(axes, "batch B, sequences a step", "ms", "ITL over the batch")


def _draw_overload(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    """What overload looks like: chunks that merge in vLLM, text that falls behind in SGLang."""
    prediction = details.prediction
    assert prediction is not None
    model = [overload_at(details, prediction, batch) for batch in _batches(details, runs)]
    if any(merges(details, run.batch) and run.broken for run in runs):
        predicted = [at.chunks_per_token for at in model]
        live = _live(runs, lambda run: run.typical_chunks_per_token)
        title, y = "Unread chunks merge", "chunks a token, median 50 ms"
        axes.set_ylim(0, 1.1 / details.interval)
    else:
        predicted = [at.lag_s_per_s / _MS for at in model]
        live = _live(runs, lambda run: run.lag_s_per_s / _MS)
        title, y = "The text falls behind", "ms a second"
    batches = _batches(details, runs)
    axes.plot(batches, predicted, color=COLOURS[0], label="predicted")
    axes.plot(*zip(*live, strict=True), "o", color=COLOURS[1], label="live (median of runs)")
    _batch_axis(axes, details, runs)
    axes.legend(fontsize=8, loc="center left")
    _finish(axes, "batch B, sequences a step", y, title)


def _batch_axis(axes: Axes, details: PipelineDetails, runs: list[RunFacts]) -> None:
    ticks = sorted({run.batch for run in runs if run.of == "walk"})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [count(batch) for batch in ticks])
    axes.minorticks_off()
    predicted = details.prediction and details.prediction.batch
    for batch, colour, name in (
        (predicted, COLOURS[0], "predicted B*"),
        (details.live_batch, COLOURS[1], "live B*"),
    ):
        if batch and ticks[0] <= batch <= max(run.batch for run in runs):
            axes.axvline(batch, color=colour, linestyle="--", linewidth=1, label=name)
