"""Chart of a ``probe`` record: how gaps, ITL and TTFT are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detokbench.records.probe import Distribution, ProbeDetails, probe_details
from detokbench.records.schema import Record
from detokbench.report.charts import COLOURS, figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MS = 1e-3
_DECADE = 10
"""Below such a range a plain axis has more numbers on it."""


def probe_figure(record: Record) -> Figure | None:
    """Gaps and ITL on the left, TTFT on the right, as cumulative shares; None without any."""
    details = probe_details(record)
    if not details.ttft.points:
        return None
    figure = figures()(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    curves = [
        ("gap between chunks", details.chunk_gap, COLOURS[0], "-"),
        ("gap, chunks with tokens", details.filled_gap, COLOURS[2], "--"),
        ("ITL per token", details.itl, COLOURS[1], "-"),
    ]
    _draw(left, curves)
    left.set_title("Gaps within streams", fontsize=10)
    left.set_xlabel("ms, measured when bytes arrive")
    _draw(right, [("TTFT", details.ttft, COLOURS[3], "-")])
    right.set_title("Time to the first token", fontsize=10)
    right.set_xlabel("ms since the request was sent")
    figure.suptitle(_caption(record, details), fontsize=8, color="#444444")
    return figure


def _draw(axes: Axes, curves: Sequence[tuple[str, Distribution, str, str]]) -> None:
    shown = [curve for curve in curves if curve[1].points]
    for name, figure, colour, dashes in shown:
        values = [point / _MS for point in figure.points]
        shares = [100 * (number + 1) / len(values) for number in range(len(values))]
        mean = f", mean {figure.mean_s / _MS:.3g} ms" if figure.mean_s is not None else ""
        axes.step(
            values, shares, where="post", color=colour, linestyle=dashes, linewidth=1.6,
            label=f"{name}{mean}",
        )  # fmt: skip
    lows, highs = ([end(c[1].points) for c in shown] for end in (min, max))
    if shown and min(lows) > 0 and max(highs) > _DECADE * min(lows):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_ylim(0, 102)
    axes.set_ylabel("per cent no longer than this")
    axes.grid(which="both", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    if shown:
        axes.legend(fontsize=8, loc="lower right")


def _caption(record: Record, details: ProbeDetails) -> str:
    settings = record.settings
    ways = ", ".join(f"{count.requests} {count.outcome}" for count in details.outcomes)
    text = (
        f"{details.server} · {details.api} · {details.model or 'no model named'} · {ways} · "
        f"{settings['concurrency']} at a time, {settings['max_tokens']} tokens each · "
        f"tokens by {details.counted_by} · {record.created[:10]}"
    )
    return text.replace("$", r"\$")
