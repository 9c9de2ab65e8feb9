"""The panels of a ramp: ITL over the batch, and what overload looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from detokbench.records.pipeline import PipelineDetails, RunFacts
from detokbench.report.charts import COLOURS
from detokbench.report.pipeline_model import host_at, merges, overload_at, step_share
from detokbench.report.pipeline_reading import is_short_of_steps
from detokbench.report.pipeline_verdicts import steps_share
from detokbench.report.units import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MS = 1e-3
_ROOM_FOR_LEGEND = 1.6
_KEPT, _BROKE, _UNCLEAR = "kept up", "did not", "not judged"
_MARKERS = {_KEPT: ("o", COLOURS[2]), _BROKE: ("X", COLOURS[1]), _UNCLEAR: ("s", "#888888")}
Read = Callable[[RunFacts], float | None]


class _Overload(NamedTuple):
    """A panel: its title, its unit, what it shows of a run, and what was predicted of it."""

    title: str
    y: str
    live: Read
    predicted: list[float]


def finish(axes: Axes, x: str, y: str, title: str) -> None:
    """The names and the grid of a panel."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def draw_over_batch(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    """ITL of every run, marked by its verdict, beside what the parts predict."""
    prediction = details.prediction
    assert prediction is not None
    batches = _batches(runs)
    host = [host_at(prediction, batch) / _MS for batch in batches]
    predicted = [overload_at(details, prediction, batch).itl_s / _MS for batch in batches]
    axes.plot(batches, host, color="#888888", linewidth=1, label="host a step, predicted")
    axes.plot(batches, predicted, color=COLOURS[0], label="ITL, predicted")
    live = _dots(axes, runs, lambda run: run.itl.mean and run.itl.mean / _MS, "live: ")
    _batch_axis(axes, details, runs)
    axes.set_ylim(0, _ROOM_FOR_LEGEND * max([*host, *predicted, *live]))
    axes.legend(fontsize=7, loc="upper left")
    finish(axes, "batch B, sequences a step", "ms", "ITL (mean) over the batch")


def _dots(axes: Axes, runs: list[RunFacts], read: Read, prefix: str) -> list[float]:
    """A marker a run, by verdict; returns what was drawn."""
    drawn: list[float] = []
    for name, (marker, colour) in _MARKERS.items():
        points = [
            (run.batch, value)
            for run in runs
            if _kind(run) == name and (value := read(run)) is not None
        ]
        if points:
            is_hollow = name == _UNCLEAR
            axes.plot(
                *zip(*points, strict=True), marker, color=colour, markersize=6,
                fillstyle="none" if is_hollow else "full", label=f"{prefix}{name}",
            )  # fmt: skip
        drawn += [value for _, value in points]
    return drawn


def _kind(run: RunFacts) -> str:
    if run.not_judged:
        return _UNCLEAR
    return _BROKE if run.broken else _KEPT


def draw_overload(axes: Axes, runs: list[RunFacts], details: PipelineDetails) -> None:
    """What overload looked like: missing steps, chunks that merge, or text that falls behind."""
    panel = overload_panel(runs, details)
    if panel.y.startswith("chunks"):
        axes.set_ylim(0, 1.1 / details.interval)
    axes.plot(_batches(runs), panel.predicted, color=COLOURS[0], label="predicted")
    _dots(axes, runs, panel.live, "live: ")
    _batch_axis(axes, details, runs)
    axes.legend(fontsize=7, loc="center left")
    finish(axes, "batch B, sequences a step", panel.y, panel.title)


def overload_panel(runs: list[RunFacts], details: PipelineDetails) -> _Overload:
    """Which of the three a ramp's runs show, by those that broke."""
    prediction = details.prediction
    assert prediction is not None
    broken, batches = [run for run in runs if run.broken], _batches(runs)
    model = [overload_at(details, prediction, batch) for batch in batches]
    short = sum(is_short_of_steps(run, details) for run in broken)
    if short > len(broken) / 2:
        return _Overload(
            "The engine does not do all steps", "% of the steps due",
            lambda run: 100 * steps_share(run, details.t_step_s),
            [100 * step_share(details, prediction, batch) for batch in batches],
        )  # fmt: skip
    if any(merges(details, run.batch) for run in broken):
        return _Overload(
            "Unread chunks merge", "chunks a token, median 50 ms",
            lambda run: run.typical_chunks_per_token,
            [at.chunks_per_token for at in model],
        )  # fmt: skip
    return _Overload(
        "The text falls behind", "ms a second",
        lambda run: max(run.lag_s_per_s, 0.0) / _MS,
        [at.lag_s_per_s / _MS for at in model],
    )  # fmt: skip


def _batches(runs: list[RunFacts]) -> list[int]:
    low, high = min(run.batch for run in runs), max(run.batch for run in runs)
    return [round(low * (high / low) ** (i / 60)) for i in range(61)] if high > low else [low]


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
