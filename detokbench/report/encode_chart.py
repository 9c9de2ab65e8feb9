"""Chart of an ``encode`` record: cost over length, waits over rate, ITL over admitted length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING

from detokbench.records.encode import ArrivalCell
from detokbench.records.schema import Record
from detokbench.report.charts import COLOURS, caption, figures
from detokbench.report.encode_figures import GROWING_PATH, EncodeFigures
from detokbench.report.units import count, milliseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MS = 1e-3
_MOST_IN_A_ROW = 3
_WAYS = {
    "direct": (COLOURS[1], "o"),
    "executor": (COLOURS[0], "s"),
    "micro-batch": (COLOURS[2], "D"),
}
_PATHS = {"fast": (COLOURS[0], "o"), "slow": (COLOURS[1], "s"), "byte-table": (COLOURS[2], "D")}
_CALLS = ((COLOURS[0], "o"), (COLOURS[1], "s"), (COLOURS[2], "D"), (COLOURS[4], "^"))
_GREY = "#666666"


def encode_figure(record: Record) -> Figure | None:
    """As many panels as there is something to draw in; None for none."""
    figure_class = figures()
    encode = EncodeFigures(record)
    lengths = list(dict.fromkeys(length for length, _ in encode.streams()))
    count_of_panels = bool(encode.calls) + len(lengths) + bool(encode.details.stalls)
    if not count_of_panels:
        return None
    rows = ceil(count_of_panels / _MOST_IN_A_ROW)
    columns = ceil(count_of_panels / rows)
    figure = figure_class(figsize=(5.6 * columns + 0.4, 4.4 * rows), layout="constrained")
    panels = iter([figure.add_subplot(rows, columns, n + 1) for n in range(count_of_panels)])
    if encode.calls:
        _draw_costs(next(panels), encode)
    for length in lengths:
        _draw_waits(next(panels), encode, length)
    if encode.details.stalls:
        _draw_stalls(next(panels), encode)
    figure.suptitle(caption(record), fontsize=8, color="#444444")
    return figure


def _draw_costs(axes: Axes, encode: EncodeFigures) -> None:
    lengths = encode.details.lengths
    for call, (colour, marker) in zip(encode.calls, _CALLS, strict=False):
        rows = [(length, row) for length in lengths if (row := encode.one(call, length))]
        points = [(n, row.median / encode.ids(n) * 1e6) for n, row in rows if row.median]
        _line(axes, points, colour, marker, call)
    threads = encode.details.threads
    styles = _CALLS[len(encode.calls) :]
    batches = sorted({batch for batch, _ in encode.batched()})
    if encode.list_calls and batches:
        call, batch = encode.list_calls[0], batches[-1]
        for number, (colour, marker) in zip(dict.fromkeys((1, threads)), styles, strict=False):
            points = [
                (length, row.median / encode.ids(length) * 1e6)
                for size, length in encode.batched()
                if size == batch
                and (row := encode.many(call, batch, length, number))
                and row.median
            ]
            words = f"{batch} in a list, {number} thread{'' if number == 1 else 's'}"
            _line(axes, points, colour, marker, words, dashes="--")
    _length_axis(axes, lengths)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("ids in the prompt")
    axes.set_ylabel("µs an id, wall time (measured)")
    axes.set_title("Cost of encoding", fontsize=10)
    axes.legend(fontsize=8, loc="lower right")


def _draw_waits(axes: Axes, encode: EncodeFigures, length: int) -> None:
    """Median waits as lines, the worst as thin ones; open marks where requests were given up."""
    from matplotlib.ticker import LogLocator

    rates = [rate for at, rate in encode.streams() if at == length]
    for way, (colour, marker) in _WAYS.items():
        cells = [cell for rate in rates if (cell := encode.arrival(way, length, rate))]
        _line(axes, _waits(cells, "median_s"), colour, marker, way)
        _line(axes, _waits(cells, "worst_s"), colour, None, None, dashes=":")
        for cell in cells:
            if cell.unfinished and cell.median_s:
                axes.plot(
                    cell.rate, cell.median_s / _MS, marker=marker, color=colour, markersize=7,
                    markerfacecolor="white",
                )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,g}")
    loads = {cell.rate: cell.load for cell in encode.details.arrivals if cell.length == length}
    axes.set_xticks(rates, [_rate_label(rate, loads.get(rate)) for rate in rates])
    axes.minorticks_off()
    axes.margins(x=0.12)
    axes.set_xlabel("requests a second (× one thread's time)")
    axes.set_ylabel("TTFT added, ms (measured)")
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    title = (
        f"Prompts of {count(length)} ids arrive\n(line: median; dotted: worst; open: some given up)"
    )
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, loc="best")


def _waits(cells: list[ArrivalCell], field: str) -> list[tuple[float, float]]:
    values = ((cell.rate, getattr(cell, field)) for cell in cells)
    return [(rate, value / _MS) for rate, value in values if value]


def _rate_label(rate: float, load: float | None) -> str:
    return f"{rate:g}" if load is None else f"{rate:g}\n(×{load:.1f})"


def _draw_stalls(axes: Axes, encode: EncodeFigures) -> None:
    """The worst gaps, measured, beside what the model says of the worst."""
    details = encode.details
    for path, (colour, marker) in _PATHS.items():
        gaps = [(cell.length, cell.worst_s) for cell in encode.stalls(path)]
        _line(axes, _in_ms(gaps), colour, marker, f"{path}, measured")
    modelled = [(c.length, c.modelled_worst_s) for c in encode.stalls(GROWING_PATH)]
    colour, _ = _PATHS[GROWING_PATH]
    _line(axes, _in_ms(modelled), colour, None, f"{GROWING_PATH}, modelled", dashes="--")
    axes.axhline(details.t_step_s / _MS, color=_GREY, linestyle=":", linewidth=1)
    lengths = sorted({cell.length for cell in details.stalls})
    axes.annotate(
        f"T_step {milliseconds(details.t_step_s)} ms (given)", (lengths[0], details.t_step_s / _MS),
        xytext=(0, -4), textcoords="offset points", va="top", fontsize=8, color=_GREY,
    )  # fmt: skip
    _length_axis(axes, lengths)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("ids in the admitted prompt")
    axes.set_ylabel("worst ITL of the others, ms")
    axes.set_title(
        f"{details.streams} streams while prompts are admitted\n(one every "
        f"{details.admit_every} steps)",
        fontsize=10,
    )
    axes.legend(fontsize=8, loc="upper left")


def _in_ms(points: Iterable[tuple[int, float | None]]) -> list[tuple[float, float]]:
    return [(length, seconds / _MS) for length, seconds in points if seconds]


def _line(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    colour: str,
    marker: str | None,
    label: str | None,
    dashes: str = "-",
) -> None:
    if points:
        axes.plot(
            *zip(*points, strict=True), color=colour, marker=marker, markersize=5, label=label,
            linestyle=dashes, linewidth=1.5 if label else 1,
        )  # fmt: skip


def _length_axis(axes: Axes, lengths: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [count(n) for n in lengths])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
