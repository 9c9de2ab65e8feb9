"""Chart of a ``tail-str`` record: scheduler time a step by part, and cost over stop length."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from detokbench.records.schema import Record
from detokbench.records.tail_str import BatchPoint, Growth, Setting, TailStrDetails, details_of
from detokbench.report.charts import COLOURS, caption
from detokbench.report.tail_str_reading import t_step_words
from detokbench.report.units import US

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PANELS = 2
_MS = 1e-3
_BLACK = "#000000"
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0}
# From the bottom up. Neighbours differ in lightness too, for grey print.
_PARTS = (
    ("finish_decode_s", "decode, finish check", COLOURS[0]),
    ("contain_s", "containment scan", COLOURS[6]),
    ("prefix_decode_s", "decode, prefix check", COLOURS[5]),
    ("prefix_scan_s", "prefix scan", COLOURS[4]),
)


def tail_str_figure(record: Record) -> Figure | None:
    """The step over the batch for one or two sets of stops, and the growth; None without any."""
    from matplotlib.figure import Figure

    details = details_of(record)
    settings = _panels(details)
    if not settings:
        return None
    growth = details.growth
    count = len(settings) + (growth is not None)
    figure = Figure(figsize=(4.6 * count + 0.6, 5), layout="constrained")
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    top_ms = max(_top_ms(setting, details) for setting in settings)
    for number, (setting, panel) in enumerate(zip(settings, axes, strict=False)):
        _draw_step(panel, setting, _points(setting, details))
        panel.set_ylim(0, top_ms * 1.08)
        if number == 0:
            panel.set_ylabel("ms a step (scheduler: modelled from measured parts)")
            panel.legend(fontsize=8, loc="upper left", reverse=True)
    if growth is not None:
        _draw_growth(axes[-1], growth)
    line = f"{caption(record)}\nT_step: {_plain(t_step_words(details.t_step))}"
    figure.suptitle(line, fontsize=8, color="#444444")
    return figure


def _panels(details: TailStrDetails) -> list[Setting]:
    """The cheapest and the dearest set of stops, at the main setting."""
    main = (details.ids_per_step, details.stream_interval)
    settings = [
        setting
        for setting in details.settings
        if setting.is_given and (setting.ids_per_step, setting.stream_interval) == main
    ]
    single = {s.name for s in details.stops if len(s.strings) + len(s.regexes) == 1}
    alone = sorted(
        (setting for setting in settings if setting.stop in single),
        key=lambda setting: setting.measured_s,
    )
    return alone if len(alone) <= _MOST_PANELS else [alone[0], alone[-1]]


def _points(setting: Setting, details: TailStrDetails) -> list[BatchPoint]:
    points = [point for point in details.batches if point.stop == setting.stop]
    return sorted(points, key=lambda point: point.batch)


def _top_ms(setting: Setting, details: TailStrDetails) -> float:
    points = _points(setting, details)
    modelled_ms = points[-1].batch * setting.modelled_s / _MS
    return max(modelled_ms, *(max(p.scheduler_s, p.t_step_s) / _MS for p in points))


def _draw_step(axes: Axes, setting: Setting, points: Sequence[BatchPoint]) -> None:
    batches = [0, *(point.batch for point in points)]
    heights = [[batch * getattr(setting, name) / _MS for batch in batches] for name, _, _ in _PARTS]
    axes.stackplot(
        batches,
        heights,
        labels=[label for _, label, _ in _PARTS],
        colors=[colour for _, _, colour in _PARTS],
        edgecolor="white",
        linewidth=0.6,
    )
    xs = [point.batch for point in points]
    axes.plot(
        xs, [p.scheduler_s / _MS for p in points], color=_BLACK, linestyle=":", linewidth=1.4,
        label="both checks, measured",
    )  # fmt: skip
    axes.plot(xs, [p.t_step_s / _MS for p in points], color=COLOURS[1], linewidth=2)
    _label_t_step(axes, points)
    if setting.crossover_batch is not None and setting.crossover.isdigit():
        _mark_crossover(axes, setting.crossover_batch, xs[-1])
    axes.set_xlim(0, xs[-1])
    axes.set_xlabel("B, sequences a step")
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    interval = "" if setting.stream_interval is None else f", k = {setting.stream_interval}"
    ids = "1 id" if setting.ids_per_step == 1 else f"{setting.ids_per_step} ids"
    axes.set_title(f"Stop: {_plain(_short(setting.stop))}  ({ids} a step{interval})", fontsize=10)


def _label_t_step(axes: Axes, points: Sequence[BatchPoint]) -> None:
    middle = points[len(points) // 2] if len(points) < 3 else points[-2]
    axes.annotate(
        "T_step", (middle.batch, middle.t_step_s / _MS), xytext=(0, 5),
        textcoords="offset points", ha="center", va="bottom", fontsize=9, color=COLOURS[1],
        bbox=_PAPER,
    )  # fmt: skip


def _mark_crossover(axes: Axes, batch: float, last: int) -> None:
    if batch >= last:
        return
    left = batch < last / 2
    axes.axvspan(batch, last, color="#888888", alpha=0.15, linewidth=0)
    axes.axvline(batch, color="#555555", linestyle="--", linewidth=1)
    axes.annotate(
        f"scheduler sets the pace\nabove B = {batch:.0f}", (batch, 0.97),
        xycoords=("data", "axes fraction"), xytext=(5, 0) if left else (-5, 0),
        textcoords="offset points", ha="left" if left else "right", va="top", fontsize=8,
        color="#222222", bbox=_PAPER,
    )  # fmt: skip


def _draw_growth(axes: Axes, growth: Growth) -> None:
    tokens = [point.tokens for point in growth.points]
    curves = [
        ("both checks", [point.both_s for point in growth.points], COLOURS[1], "s"),
        ("prefix scan", [point.prefix_scan_s for point in growth.points], COLOURS[4], "o"),
        ("one decode", [point.decode_s for point in growth.points], COLOURS[0], "D"),
        ("containment", [point.contain_s for point in growth.points], COLOURS[6], "^"),
    ]
    for name, seconds, colour, marker in curves:
        values = [value / US for value in seconds]
        axes.plot(tokens, values, marker=marker, markersize=5, color=colour)
        axes.annotate(
            name, (tokens[-1], values[-1]), xytext=(7, 0), textcoords="offset points",
            va="center", fontsize=8, color=colour, annotation_clip=False,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    _draw_guides(axes, growth)
    axes.set_xticks(tokens, [f"{number}" for number in tokens])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("tokens of the stop string")
    axes.set_ylabel("µs a request and step (measured)")
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_title(f"Growth: prefix scan ~ characters^{growth.power:.2f}", fontsize=10)


def _draw_guides(axes: Axes, growth: Growth) -> None:
    """What growth with the length and with its square would look like from the first scan on."""
    first, last = growth.points[0], growth.points[-1]
    ratio = last.scanned_chars / first.scanned_chars
    start = first.prefix_scan_s / US
    top = 2 * max(point.both_s for point in growth.points) / US
    axes.set_ylim(top=top)
    for power, name in ((1, "∝ length"), (2, "∝ length²")):
        end = start * ratio**power
        # The name stands where its line leaves the picture, or at three quarters of it.
        share = min(0.75, 0.93 * log(top / start) / log(end / start))
        at = first.tokens * (last.tokens / first.tokens) ** share, start * (end / start) ** share
        axes.plot(
            [first.tokens, last.tokens], [start, end], color="#888888", linewidth=1,
            linestyle="--", zorder=1,
        )  # fmt: skip
        axes.annotate(
            name, at, xytext=(6, -3), textcoords="offset points", ha="left", va="top",
            fontsize=8, color="#666666", bbox=_PAPER,
        )  # fmt: skip


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def _plain(text: str) -> str:
    """A text in which the drawing library sees no formula."""
    return text.replace("$", r"\$")
