"""A whole front end's line in the chart of a sweep, and the ring where a line crosses T_step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.model.crossover import Answer, Crossover
from detokbench.records.sweep import Sweep
from detokbench.report.sweep_front_ends import WholeFrontEnd
from detokbench.tstep.curves import TStepCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_ring(axes: Axes, found: Crossover, curve: TStepCurve, colour: str) -> None:
    """A ring at B*, where it is within what was measured."""
    if found.answer is Answer.CROSSES and found.batch is not None:
        axes.plot(
            found.batch, curve(found.batch) * 1e3, marker="o", markersize=11,
            markerfacecolor="none", markeredgecolor=colour, markeredgewidth=1.6,
        )  # fmt: skip


def draw_front_end(
    axes: Axes, sweep: Sweep, whole: WholeFrontEnd, colour: str
) -> tuple[float, str, str]:
    """Thick between its measured points, dotted beyond; its end, name and colour for a label."""
    first, last = sweep.batches[0], sweep.batches[-1]
    low, high = whole.measured_at[0], whole.measured_at[-1]
    corners = [batch for batch in whole.measured_at if first <= batch <= last]
    # On these axes a straight line with an intercept is bent, so that every batch is drawn.
    every = sorted({*map(float, range(first, last + 1)), *corners})
    parts = (
        ([batch for batch in every if batch <= low], ":"),
        ([batch for batch in every if low <= batch <= high], "-"),
        ([batch for batch in every if batch >= high], ":"),
    )
    for batches, dashes in parts:
        axes.plot(
            batches, [whole.host_s(batch) * 1e3 for batch in batches],
            color=colour, linestyle=dashes, linewidth=2.6, alpha=0.8,
        )  # fmt: skip
    axes.plot(
        corners, [whole.host_s(batch) * 1e3 for batch in corners],
        color=colour, linestyle="none", marker="s", markersize=6,
    )  # fmt: skip
    for curve in sweep.curves:
        draw_ring(axes, whole.crossover(curve), curve, colour)
    return whole.host_s(last) * 1e3, whole.label, colour
