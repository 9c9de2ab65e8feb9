"""T_step over batch, from a ``time-step`` record."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple

from detokbench.records.schema import Record, Row, Source
from detokbench.records.time_step import PublishedPoint
from detokbench.report.charts import COLOURS, spread_apart
from detokbench.report.time_step_rows import TimeStepRows, gpu_title
from detokbench.report.units import count, tera

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MS = 1e-3
_DASHED = "--"  # the memory term alone, in the colour of its context
_STYLES: tuple[Any, ...] = ("-", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)))
_GREY = "#555555"
_NAME_SIZE = 8
_NAME_GAP = 0.032  # of the height, between lines of text at the ends of lines
_LABEL_GAP = 0.032  # of the height, between the names of published steps
_CAPTION_WIDTH = 150
_FEW_DECADES = 1.4  # of the axis of T_step, in which every digit still has room for its name
_SAME = 1e-3  # the memory term is drawn where it is more than this share below the step


class _Name(NamedTuple):
    """What stands at the end of a line."""

    batch: int
    t_step_s: float
    text: str
    colour: str
    size: int = _NAME_SIZE


def time_step_figure(record: Record) -> Figure | None:
    """T_step over batch, a line for each context, on two logarithmic axes.

    None where no point has a time, or none of them fits in memory.
    """
    from matplotlib.figure import Figure

    rows = TimeStepRows(record)
    lines = [source for source in rows.sources if any(_lines(rows, source))]
    if not lines:
        return None
    figure = Figure(figsize=(10, 5.8), layout="constrained")
    axes = figure.subplots()
    names: list[_Name] = []
    for source in lines:
        names += _draw_source(axes, rows, source, name_lines=source == _named_source(lines))
    names += _draw_memory_only(axes, rows)
    _dress(axes, rows)
    _write_names(axes, names)
    _draw_published(axes, rows.details.published)
    _draw_key(axes, rows)
    figure.suptitle(_caption(rows), fontsize=8, color="#444444")
    return figure


def _named_source(lines: list[Source]) -> Source:
    """The source whose lines carry the names of the contexts: the roofline if there is one."""
    return "roofline" if "roofline" in lines else lines[0]


def _lines(rows: TimeStepRows, source: Source) -> list[list[tuple[int, Row]]]:
    return [rows.line(source, context) for context in rows.contexts]


def _draw_source(axes: Axes, rows: TimeStepRows, source: Source, name_lines: bool) -> list[_Name]:
    names = []
    for number, (context, line) in enumerate(zip(rows.contexts, _lines(rows, source), strict=True)):
        if not line:
            continue
        colour = COLOURS[number % len(COLOURS)]
        if source in {"measured", "cpu"}:
            _draw_timed(axes, line, colour)
        else:
            width = 1.8 if source == "roofline" else 0.9
            style = _STYLES[number % len(_STYLES)]
            points = _points_with_ridge(rows, context, line)
            axes.plot(*points, color=colour, linestyle=style, linewidth=width)
        if name_lines:
            names.append(_name(line, _line_name(rows, context), colour))
        elif source == "derated":
            names.append(_name(line, f"× {rows.details.options['derate']:g}", colour, size=7))
    return names


def _name(line: list[tuple[int, Row]], text: str, colour: str, size: int = _NAME_SIZE) -> _Name:
    batch, row = line[-1]
    return _Name(batch, row.median or 0, text, colour, size)


def _points(line: list[tuple[int, Row]]) -> tuple[list[float], list[float]]:
    return [batch for batch, _ in line], [(row.median or 0) / _MS for _, row in line]


def _points_with_ridge(
    rows: TimeStepRows, context: int, line: list[tuple[int, Row]]
) -> tuple[list[float], list[float]]:
    """The points of a modelled line, and the corner that lies between two of its batches.

    The memory term rises evenly with the batch, and so from either side up to the ridge does a
    step: the corner is found between the neighbours on that term.
    """
    batches, times_ms = _points(line)
    ridges = {answer.context: answer.ridge_batch for answer in rows.details.answers}
    ridge = ridges.get(context)
    after = next((at for at, batch in enumerate(batches) if ridge and batch > ridge), 0)
    if ridge is None or after == 0:
        return batches, times_ms
    below, above = (rows.get("memory-only", int(batches[at]), context) for at in (after - 1, after))
    if below is None or above is None or not below.row.median or not above.row.median:
        return batches, times_ms
    share = (ridge - batches[after - 1]) / (batches[after] - batches[after - 1])
    growth = 1 + share * (above.row.median / below.row.median - 1)
    corner_ms = times_ms[after - 1] * growth
    return (
        [*batches[:after], ridge, *batches[after:]],
        [*times_ms[:after], corner_ms, *times_ms[after:]],
    )


def _draw_timed(axes: Axes, line: list[tuple[int, Row]], colour: str) -> None:
    batches, times_ms = _points(line)
    bars = [
        [
            ((row.median or 0) - (row.ci_low or row.median or 0)) / _MS,
            ((row.ci_high or row.median or 0) - (row.median or 0)) / _MS,
        ]
        for _, row in line
    ]
    axes.errorbar(
        batches, times_ms, yerr=list(zip(*bars, strict=True)), fmt="o", markersize=5,
        color=colour, capsize=3, linestyle="-", linewidth=0.6,
    )  # fmt: skip


def _line_name(rows: TimeStepRows, context: int) -> str:
    """The context of a line, with the reason where it ends early."""
    largest = {answer.context: answer.largest_batch for answer in rows.details.answers}
    room = largest.get(context)
    if room is None or room >= rows.batches[-1]:
        return f"L = {count(context)}"
    return f"L = {count(context)}\n(memory full\nat B = {room})"


def _write_names(axes: Axes, names: list[_Name]) -> None:
    """Write each name beside the end of its line, moved apart where several end together."""
    low, high = axes.get_ylim()
    for batch in dict.fromkeys(name.batch for name in names):
        ending = sorted(
            (name for name in names if name.batch == batch), key=lambda name: name.t_step_s
        )
        lines = max(name.text.count("\n") + 1 for name in ending)
        heights = spread_apart(
            [log10(name.t_step_s / _MS) for name in ending],
            lines * _NAME_GAP * log10(high / low),
        )
        for name, height in zip(ending, heights, strict=True):
            axes.annotate(
                name.text, (batch, 10**height), xytext=(7, 0), textcoords="offset points",
                va="center", color=name.colour, fontsize=name.size, annotation_clip=False,
            )  # fmt: skip


def _draw_memory_only(axes: Axes, rows: TimeStepRows) -> list[_Name]:
    """The memory term alone, where compute takes longer and it lies below the step."""
    names = []
    for number, context in enumerate(rows.contexts):
        memory, step = rows.line("memory-only", context), rows.line("roofline", context)
        below = [
            (row.median or 0) < (whole.median or 0) * (1 - _SAME)
            for (_, row), (_, whole) in zip(memory, step, strict=True)
        ]
        if not any(below):
            continue
        start = max(0, below.index(True) - 1)
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(*_points(memory[start:]), color=colour, linestyle=_DASHED, linewidth=1.2)
        names.append(_name(memory, "memory alone", colour, size=7))
    return names


def _dress(axes: Axes, rows: TimeStepRows) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _tick(axes, rows.batches)
    axes.set_xlabel("B, sequences in the step")
    axes.set_ylabel("T_step, ms")
    axes.grid(which="both", color="#e4e4e4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    model = rows.details.model["name"]
    axes.set_title(
        f"One decode step of {model} by batch, at mean KV lengths of L tokens", fontsize=10
    )


def _tick(axes: Axes, batches: list[int]) -> None:
    """Powers of two below; beside, 1, 2 and 5, or every digit where there is room."""
    from matplotlib.ticker import LogLocator, NullLocator

    powers = [1 << power for power in range(25) if batches[0] <= 1 << power <= batches[-1]]
    ticks = powers or batches
    axes.set_xticks(ticks, [count(tick) for tick in ticks])
    low, high = axes.get_ylim()
    has_room = log10(high / low) < _FEW_DECADES
    axes.yaxis.set_major_locator(LogLocator(subs=range(1, 10) if has_room else (1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())


def _draw_published(axes: Axes, points: list[PublishedPoint]) -> None:
    """A marker for each published step, named beside it; the names of batch 1 on the left."""
    if not points:
        return
    axes.plot(
        [point.batch for point in points], [point.t_step_s / _MS for point in points],
        linestyle="none", marker="x", markersize=6, color="#000000", zorder=4,
    )  # fmt: skip
    low, high = axes.get_ylim()
    gap = _LABEL_GAP * log10(high / low)
    at_one = [point for point in points if point.batch == 1]
    others = [point for point in points if point.batch != 1]
    axes.set_xlim(left=0.12)
    _name_published(axes, at_one, gap, factor=0.8, side="right")
    # Far enough to the right to clear the lines, which are steep here.
    _name_published(axes, others, gap, factor=1.85, side="left")
    axes.set_ylim(low, high)


def _name_published(
    axes: Axes, points: list[PublishedPoint], gap: float, factor: float, side: Any
) -> None:
    ordered = sorted(points, key=lambda point: point.t_step_s)
    heights = spread_apart([log10(point.t_step_s / _MS) for point in ordered], gap)
    for point, height in zip(ordered, heights, strict=True):
        engine = point.engine.replace(" generate.py", "")
        axes.annotate(
            f"{engine}  {point.t_step_s / _MS:.2f}",
            (point.batch, point.t_step_s / _MS),
            xytext=(point.batch * factor, 10**height),
            textcoords="data",
            ha=side,
            va="center",
            fontsize=7,
            color=_GREY,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
            arrowprops={
                "arrowstyle": "-",
                "color": "#aaaaaa",
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 3,
                "relpos": (1.0 if side == "right" else 0.0, 0.5),
            },
        )


def _draw_key(axes: Axes, rows: TimeStepRows) -> None:
    """What the kinds of lines and markers are; the contexts are named at their lines."""
    from matplotlib.lines import Line2D

    kinds: dict[Source, tuple[str, dict[str, Any]]] = {
        "measured": ("measured; bars: 95 % interval", {"marker": "o", "linewidth": 0.6}),
        "cpu": ("timed on a CPU, not a GPU", {"marker": "o", "linewidth": 0.6}),
        "roofline": ("modelled: roofline", {"linewidth": 1.8}),
        "derated": ("modelled: roofline, derated", {"linewidth": 0.9}),
    }
    shown = [kinds[source] for source in rows.sources]
    if rows.details.published:
        shown.append(("published by others, one H100", {"marker": "x", "linestyle": "none"}))
    handles = [Line2D([], [], color="#000000", label=label, **look) for label, look in shown]
    # Modelled lines rise to the right; times of a CPU may lie anywhere.
    place: Any = "upper left" if "roofline" in rows.sources else "best"
    axes.legend(handles=handles, fontsize=8, loc=place, frameon=True)


def _caption(rows: TimeStepRows) -> str:
    details, record = rows.details, rows.record
    options = details.options
    parts = [
        f"{details.model['name']}, weights {options['weights']}, KV {options['kv']}",
        *_device_parts(rows),
    ]
    if details.gpu is not None:
        gpu = details.gpu
        parts.append(
            f"{gpu_title(gpu, options['tp'])}: {tera(gpu['bandwidth_bytes_s'])} TB/s, "
            f"{tera(gpu['bf16_flop_s'])} TFLOP/s bf16 ({gpu['source']})"
        )
    return _in_lines([*parts, f"detokbench {record.detokbench}, {record.created[:10]}"])


def _in_lines(parts: list[str]) -> str:
    """Parts with dots between, on as many lines as they need."""
    lines = parts[:1]
    for part in parts[1:]:
        longer = f"{lines[-1]} · {part}"
        lines[-1:] = [longer] if len(longer) <= _CAPTION_WIDTH else [lines[-1], part]
    return "\n".join(lines)


def _device_parts(rows: TimeStepRows) -> list[str]:
    device = rows.details.device
    if device is None:
        return []
    if rows.timed_source == "cpu":
        return [f"{rows.record.machine['cpu']}, torch {device['torch']}"]
    return [
        f"timed on {device['name']}, driver {device['driver']}, CUDA {device['cuda']}, "
        f"torch {device['torch']}"
    ]
