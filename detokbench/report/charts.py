"""What all charts share, their files, and the chart of a ``measure-c`` record."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detokbench.records.schema import Record
from detokbench.records.store import write_beside
from detokbench.report.measure_c_rows import Rows, label
from detokbench.report.reading import ASSUMED_C_S
from detokbench.report.units import US, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by the colour-blind and, by lightness, in grey print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MOST_BATCHES_AS_DOTS = 4
_FORMATS = (".png", ".svg")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X")


def measure_c_figure(record: Record) -> Figure | None:
    """Cost a token by path, and first-token cost over prompt length. None without such rows."""
    figure_class = figures()
    rows = Rows(record)
    if not rows.batches:
        return None
    figure = figure_class(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    if len(rows.batches) <= _MOST_BATCHES_AS_DOTS:
        _draw_costs(left, rows)
    else:
        _draw_cost_lines(left, rows)
    _draw_first_tokens(right, rows)
    figure.suptitle(caption(record), fontsize=8, color="#444444")
    return figure


def figures() -> type[Figure]:
    """matplotlib's Figure, whatever back end a notebook has asked for in the environment."""
    os.environ["MPLBACKEND"] = "agg"
    from matplotlib.figure import Figure

    return Figure


def _draw_costs(axes: Axes, rows: Rows) -> None:
    pairs = rows.timed_paths()[::-1]
    for number, batch in enumerate(rows.batches):
        colour, marker = COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)]
        offset = 0.18 * (number - (len(rows.batches) - 1) / 2)
        for height, (path, threads) in enumerate(pairs):
            row = rows.get(path, "per_token", batch, threads)
            if row is None or not row.median:
                continue
            low, high = row.ci_low or row.median, row.ci_high or row.median
            axes.errorbar(
                row.median / US,
                height - offset,
                xerr=[[(row.median - low) / US], [(high - row.median) / US]],
                fmt=marker,
                color=colour,
                markersize=5,
                label=f"B = {batch}" if height == 0 else None,
            )
    axes.axvline(ASSUMED_C_S / US, color="#888888", linestyle="--", linewidth=1)
    axes.annotate(
        "10 µs: a call, as assumed", (ASSUMED_C_S / US, len(pairs) - 0.45),
        xytext=(-4, 0), textcoords="offset points", ha="right", fontsize=7, color="#666666",
    )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(-0.6, len(pairs) - 0.2)
    names = [f"{label(*pair)}{_mark(rows, pair[0])}" for pair in pairs]
    axes.set_yticks(range(len(pairs)), names)
    has_intervals = any(row.ci_low is not None for row in rows.record.rows)
    bars = "; bars: 95 % interval" if has_intervals else ""
    axes.set_xlabel(f"host cost, µs a token (measured{bars})")
    axes.grid(axis="x", which="both", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="best", frameon=True)
    axes.set_title("Cost of a token by path  (* wrong text)", fontsize=10)


def _draw_cost_lines(axes: Axes, rows: Rows) -> None:
    """Cost over the batch, a line a path, where dots for each batch would lie on each other."""
    ends: list[tuple[float, str, str]] = []
    for number, pair in enumerate(rows.timed_paths()):
        points = [
            (batch, row.median / US)
            for batch in rows.batches
            if (row := rows.get(pair[0], "per_token", batch, pair[1])) and row.median
        ]
        if points:
            colour = COLOURS[number % len(COLOURS)]
            marker = _MARKERS[number % len(_MARKERS)]
            dashes = "-" if number < len(COLOURS) else "--"
            axes.plot(
                *zip(*points, strict=True), marker=marker, markersize=4, color=colour, ls=dashes
            )
            ends.append((points[-1][1], f"{label(*pair)}{_mark(rows, pair[0])}", colour))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xticks(rows.batches, [count(batch) for batch in rows.batches])
    axes.minorticks_off()
    axes.set_xlabel("batch B, sequences a step")
    axes.set_ylabel("host cost, µs a token (measured)")
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_title("Cost of a token by path  (* wrong text)", fontsize=10)
    _label_ends(axes, ends, rows.batches[-1])


def _mark(rows: Rows, path: str) -> str:
    wrong = {result.path for result in rows.record.gate if result.verdict != "pass"}
    return " *" if path in wrong else ""


def _draw_first_tokens(axes: Axes, rows: Rows) -> None:
    ends: list[tuple[float, str, str]] = []
    for path in dict.fromkeys(path for path, _ in rows.right_paths()):
        points = [
            (prompt_len, cost / US)
            for prompt_len in rows.prompt_lens
            if (cost := rows.first_token_s(path, prompt_len)) is not None
        ]
        if points:
            colour = COLOURS[len(ends) % len(COLOURS)]
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour)
            ends.append((points[-1][1], path, colour))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xticks(rows.prompt_lens, [count(n) for n in rows.prompt_lens])
    axes.minorticks_off()
    axes.set_xlabel("ids in the prompt")
    axes.set_ylabel("µs a request (measured)")
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_title("Admission and first token", fontsize=10)
    if rows.prompt_lens:
        _label_ends(axes, ends, rows.prompt_lens[-1])


def _label_ends(axes: Any, ends: list[tuple[float, str, str]], x: float) -> None:
    """Name each line at its end, moved apart where names would lie on each other."""
    low, high = axes.get_ylim()
    least_factor = (high / low) ** 0.05
    taken = 0.0
    for y, name, colour in sorted(ends):
        at = max(y, taken * least_factor)
        taken = at
        axes.annotate(
            name, (x, at), xytext=(6, 0), textcoords="offset points", va="center",
            color=colour, fontsize=8, annotation_clip=False,
        )  # fmt: skip


def spread_apart(values: Sequence[float], gap: float) -> list[float]:
    """Places for rising values, at least ``gap`` apart and as a whole where the values are."""
    places: list[float] = []
    for value in values:
        places.append(max(value, places[-1] + gap) if places else value)
    shift = (sum(values) - sum(places)) / len(places) if places else 0.0
    return [place + shift for place in places]


def caption(record: Record) -> str:
    """What was measured, with what, on what: the line over every chart."""
    packages = record.packages
    return (
        f"{record.vocabulary['name']} · {record.scenario['name']} · tokenizers "
        f"{packages['tokenizers']} · transformers {packages['transformers']} · "
        f"{record.machine['python']} · {record.machine['cpu']}, "
        f"{record.machine['cpus_usable']} CPUs · "
        f"{record.settings['processes_finished']} processes · {record.created[:10]}"
    )


def chart_files(beside: Path) -> tuple[Path, Path]:
    """The names of a chart: those of the record, as PNG and as SVG."""
    return beside.with_suffix(".png"), beside.with_suffix(".svg")


def save_figure(figure: Figure, beside: Path, replace: bool) -> list[Path]:
    """Write both formats next to the record, under its name.

    With ``replace`` over an earlier drawing, else under another name where there is such a file.
    """
    png, svg = chart_files(beside)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    contents = {png: picture.getvalue(), svg: svg_text(figure, names=beside.stem).encode()}
    if not replace:
        return [write_beside(content, path) for path, content in contents.items()]
    for path, content in contents.items():
        path.write_bytes(content)
    return [png, svg]


def svg_text(figure: Figure, names: str) -> str:
    """A figure as SVG, without its date, so that a redrawn chart is the same file.

    The names of its parts follow from ``names``, which must differ within one page.
    """
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.hashsalt": names}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()
