"""Chart of a ``probe`` record: how gaps, ITL and TTFT are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from detokbench.records.probe import Distribution, ProbeDetails, probe_details
from detokbench.records.schema import Record
from detokbench.report.charts import COLOURS, figures
from detokbench.report.probe_reading import percentiles_need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MS = 1e-3
_DECADE = 10
"""Below such a range a plain axis has more numbers on it."""
_WIDE = 3000
"""Beyond such a range ticks at 2 and 5 would run into each other."""


class _Curve(NamedTuple):
    name: str
    figure: Distribution
    colour: str
    dashes: str
    width: float


def probe_figure(record: Record) -> Figure | None:
    """Gaps and ITL on the left, TTFT on the right, as cumulative shares; None without any."""
    details = probe_details(record)
    if not details.ttft.points:
        return None
    figure = figures()(figsize=(10, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    # Thick below thin: with a token a chunk all three are one curve.
    curves = [
        _Curve("gap between chunks", details.chunk_gap, COLOURS[5], "-", 4.0),
        _Curve("gap, chunks with tokens", details.filled_gap, COLOURS[2], "--", 2.0),
        _Curve("ITL per token", details.itl, COLOURS[1], "-", 1.0),
    ]
    _draw(left, curves, _without_itl(details))
    left.set_title("Gaps within streams", fontsize=10)
    left.set_xlabel("ms, measured when bytes arrive")
    _draw(right, [_Curve("TTFT", details.ttft, COLOURS[3], "-", 1.6)])
    right.set_title("Time to the first token", fontsize=10)
    right.set_xlabel("ms since the request was sent")
    figure.suptitle(_caption(record, details), fontsize=8, color="#444444")
    return figure


def _draw(axes: Axes, curves: Sequence[_Curve], note: str = "") -> None:
    shown = [curve for curve in curves if curve.figure.points]
    for curve in shown:
        values = [point / _MS for point in curve.figure.points]
        shares = [100 * (number + 1) / len(values) for number in range(len(values))]
        axes.step(
            values, shares, where="post", color=curve.colour, linestyle=curve.dashes,
            linewidth=curve.width, label=f"{curve.name}{_mean(curve.figure)}",
        )  # fmt: skip
    if note:
        axes.plot([], [], " ", label=note)
    if shown:
        _scale(axes, [point / _MS for curve in shown for point in curve.figure.points])
        # Below the axes: curves of this kind may be anywhere within.
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    axes.set_ylim(0, 102)
    axes.set_ylabel("per cent no longer than this")
    axes.grid(which="both", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def _mean(figure: Distribution) -> str:
    return "" if figure.mean_s is None else f", mean {figure.mean_s / _MS:.3g} ms"


def _without_itl(details: ProbeDetails) -> str:
    """What the chart says in the place of an ITL that has no curve."""
    if details.itl.points:
        return ""
    needed = percentiles_need(details)
    return f"ITL per token{_mean(details.itl) or ': unknown'}{needed and f'; more by {needed}'}"


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis where values span a decade, with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = min(values), max(values)
    if low <= 0 or high <= _DECADE * low:
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high <= _WIDE * low else (1,)))
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _caption(record: Record, details: ProbeDetails) -> str:
    settings = record.settings
    ways = ", ".join(f"{count.requests} {count.outcome}" for count in details.outcomes)
    text = (
        f"{details.server} · {details.api} · {details.model or 'no model named'} · {ways} · "
        f"{settings['concurrency']} at a time, up to {settings['max_tokens']:,} tokens asked · "
        f"tokens by {details.counted_by} · {record.created[:10]}"
    )
    return text.replace("$", r"\$")
