"""Host against GPU over the batch, and the share of T_step by batch and stream interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from statistics import median
from typing import TYPE_CHECKING, Any

from detokbench.model.sweep import PathCost, busiest_samples
from detokbench.records.schema import Record
from detokbench.records.sweep import Crossing, Sweep
from detokbench.report.charts import COLOURS, caption, spread_apart
from detokbench.report.measure_c_rows import label
from detokbench.report.sweep_front_end_chart import draw_front_end, draw_ring
from detokbench.report.sweep_front_ends import measured_front_ends
from detokbench.report.sweep_reading import at_context, engine_costs
from detokbench.report.units import count, significant
from detokbench.tstep.curves import TStepCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHES = ("-", "--", "-.", ":")
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.6, "pad": 0.5}
_NAME_GAP = 0.032  # of the height, between the names of two lines
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "*")


def sweep_figure(record: Record) -> Figure | None:
    """Both charts in one figure; None where fewer than two batches were measured."""
    from matplotlib.figure import Figure

    sweep = Sweep(record)
    if len(sweep.batches) < 2:
        return None
    engines = engine_costs(sweep)
    figure = Figure(figsize=(13, 6.2), layout="constrained")
    grid = figure.add_gridspec(max(1, len(engines)), 2, width_ratios=(3, 2))
    _draw_lines(figure.add_subplot(grid[:, 0]), sweep)
    for row, (engine, cost) in enumerate(engines):
        _draw_heat(figure.add_subplot(grid[row, 1]), sweep, engine, cost)
    figure.suptitle(caption(record), fontsize=8, color="#444444")
    return figure


def _draw_lines(axes: Axes, sweep: Sweep) -> None:
    batches = sweep.batches
    curves = [[curve(batch) * 1e3 for batch in batches] for curve in sweep.curves]
    lowest, highest = (
        [min(column) for column in zip(*curves, strict=True)],
        [max(column) for column in zip(*curves, strict=True)],
    )
    top = max(highest) * 4
    axes.fill_between(batches, lowest, highest, color="#bbbbbb", alpha=0.6, linewidth=0)
    axes.fill_between(batches, highest, top, color="#D55E00", alpha=0.07, linewidth=0)
    ends: list[tuple[float, str, str]] = []
    crossings = list(sweep.crossings())  # a bootstrap each: seconds, so they are found once
    for number, cost in enumerate(sweep.costs):
        ends.append(_draw_path(axes, sweep, cost, number, crossings))
    for number, whole in enumerate(measured_front_ends(sweep), len(sweep.costs)):
        ends.append(draw_front_end(axes, sweep, whole, COLOURS[number % len(COLOURS)]))
    for curve, points in zip(sweep.curves, curves, strict=True):
        axes.plot(batches, points, color="#444444", linewidth=1, linestyle=":")
        axes.annotate(
            f"T_step{at_context(curve)}", (batches[-1], points[-1]), xytext=(-4, 4),
            textcoords="offset points", ha="right", fontsize=7, color="#444444", bbox=_PAPER,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(batches, [count(batch) for batch in batches])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(top=top)
    axes.set_xlim(batches[0], batches[-1])
    axes.minorticks_off()
    _label_ends(axes, ends, batches[-1])
    axes.set_xlabel("batch B, sequences a step")
    axes.set_ylabel("ms a step")
    axes.grid(color="#dddddd", linewidth=0.5)
    source = sweep.curves[0].source
    thick = "; thick: whole front ends, dotted where prolonged" if sweep.options.front_ends else ""
    axes.set_title(
        f"Busiest host process, sending at k = 1 (measured), and T_step ({source}, grey)\n"
        f"shaded: the host is late at every context; rings: B*{thick}",
        fontsize=9,
    )


def _draw_path(
    axes: Axes, sweep: Sweep, cost: PathCost, number: int, crossings: Sequence[Crossing]
) -> tuple[float, str, str]:
    colour = COLOURS[number % len(COLOURS)]
    points = _host_ms(sweep, cost)
    axes.plot(
        list(points),
        list(points.values()),
        color=colour,
        linestyle=_DASHES[number // len(COLOURS) % len(_DASHES)],
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=4,
        linewidth=1.3,
    )
    for crossing in crossings:
        if (crossing.path, crossing.threads) == cost.key and crossing.counted == "all":
            draw_ring(axes, crossing.found.point, crossing.curve, colour)
    return list(points.values())[-1], label(*cost.key), colour


def _host_ms(sweep: Sweep, cost: PathCost, interval: int = 1) -> dict[int, float]:
    """Milliseconds a step of the busiest host process by batch: median over processes."""
    options = sweep.options
    samples = busiest_samples(
        cost,
        sweep.sending(interval),
        interval,
        options.ids_per_step,
        options.engines_per_frontend,
    )
    return {batch: median(points[batch] for points in samples) * 1e3 for batch in sweep.batches}


def _label_ends(axes: Any, ends: list[tuple[float, str, str]], x: float) -> None:
    """Name each line beside its end, moved apart where names would lie on each other."""
    low, high = axes.get_ylim()
    ordered = sorted(ends)
    gap = _NAME_GAP * log10(high / low)
    heights = spread_apart([log10(y) for y, _, _ in ordered], gap)
    for (y, name, colour), height in zip(ordered, heights, strict=True):
        axes.annotate(
            name, (x, y), xytext=(x * 1.22, 10**height), textcoords="data", va="center",
            color=colour, fontsize=8, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkB": 3,
                        "shrinkA": 0, "relpos": (0, 0.5)},
        )  # fmt: skip


def _draw_heat(axes: Axes, sweep: Sweep, engine: str, cost: PathCost) -> None:
    """Host over GPU, in per cent; 100 and more is late."""
    from matplotlib.colors import TwoSlopeNorm

    curve = min(sweep.curves, key=lambda curve: curve(sweep.options.at_batch))
    intervals = sweep.options.intervals
    shares = [
        [_host_ms(sweep, cost, k)[batch] / curve(batch) / 10 for batch in sweep.batches]
        for k in intervals
    ]
    most = max(map(max, shares))
    image: Any = axes.imshow(
        shares,
        cmap="PuOr_r",
        norm=TwoSlopeNorm(vmin=0, vcenter=100, vmax=max(200, most)),
        aspect="auto",
    )
    for row, values in enumerate(shares):
        for column, value in enumerate(values):
            axes.text(
                column, row, significant(value, 2), ha="center", va="center", fontsize=7,
                color=_ink(image.to_rgba(value)),
                fontweight="bold" if value > 100 else "normal",
            )  # fmt: skip
    axes.set_xticks(range(len(sweep.batches)), [count(batch) for batch in sweep.batches])
    axes.set_yticks(range(len(intervals)), [str(interval) for interval in intervals])
    axes.set_xlabel("batch B")
    axes.set_ylabel("stream interval k")
    axes.set_title(f"{engine} ({label(*cost.key)}): host in % of T_step{_where(curve)}", fontsize=9)


def _ink(paper: Any) -> str:
    """White on a dark colour, black on a light one."""
    red, green, blue, _ = paper
    return "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "black"


def _where(curve: TStepCurve) -> str:
    return f" ({curve.source}{at_context(curve)})"
