"""Chart of a ``frontend`` record: what a token costs whom, what overload looks like, and B*."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from detokbench.model.curves import Measured
from detokbench.records.frontend import PLAIN, FrontendDetails, FrontendRun, details_of
from detokbench.records.schema import Record
from detokbench.report.charts import COLOURS, figures
from detokbench.report.frontend_runs import (
    OURS,
    common_run,
    limits_of,
    main_run,
    own_cpu_s,
    roles_worth_showing,
    shown_runs,
)
from detokbench.report.units import US, count, microseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MS = 1e-3
_ROLE_COLOURS = {"http": "#0072B2", "rust": "#D55E00", "detokenizer": "#009E73"}
_OTHER_COLOURS = ("#CC79A7", "#E69F00", "#56B4E9")
_OUR_COLOURS = {"engine": "#bbbbbb", "client": "#dddddd"}
_MARKERS = ("o", "s", "D", "^")
_DASHES = ("--", ":", "-.")
_CHUNKS: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1}
_PACE: dict[str, Any] = {"marker": "x", "markersize": 5, "linewidth": 1, "linestyle": ":"}
_LAST = 512  # batches on the axis of B


def frontend_figure(record: Record) -> Figure | None:
    """Four panels, or the upper two where no limit was looked for; None without runs."""
    details = details_of(record)
    if not any(run.ids for run in details.runs):
        return None
    has_limits = any(limit.held_s for limit in details.limits)
    figure = figures()(figsize=(13, 9.2 if has_limits else 4.9), layout="constrained")
    panels = figure.subplots(2 if has_limits else 1, 2, squeeze=False)
    _draw_roles(panels[0][0], details)
    _draw_over_streams(panels[0][1], details)
    if has_limits:
        _draw_beyond(panels[1][0], details)
        _draw_against_gpu(panels[1][1], details)
    figure.suptitle(_title(record, details), fontsize=8, color="#444444")
    return figure


def _title(record: Record, details: FrontendDetails) -> str:
    machine = record.machine
    engines = ", ".join(f"{engine.name} {engine.version}" for engine in details.engines)
    several = "" if details.front_ends == 1 else f", {details.front_ends} front-end processes"
    return (
        f"{record.vocabulary['name']} · {record.scenario['name']} · {machine['cpu']}, "
        f"{machine['cpus_usable']} CPUs · {record.created[:10]}\n"
        f"{engines}{several}: their own servers against a clock for a GPU, requests of "
        f"{details.max_tokens} ids"
    )


def _colour(details: FrontendDetails, engine: str) -> str:
    names = [one.name for one in details.engines]
    return COLOURS[names.index(engine) % len(COLOURS)]


def _finish(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def _draw_roles(axes: Axes, details: FrontendDetails) -> None:
    """A bar an engine, at the same point where there is one; ours in grey behind the own roles."""
    names = [engine.name for engine in details.engines]
    common = common_run(details)
    runs = {name: common.get(name) or main_run(details, name) for name in names}
    shown = {name: run for name, run in runs.items() if run is not None}
    others = iter(_OTHER_COLOURS)
    colours = {**_ROLE_COLOURS, **_OUR_COLOURS}
    left = dict.fromkeys(shown, 0.0)
    for role in roles_worth_showing(list(shown.values())):
        colour = colours.get(role) or next(others, "#000000")
        widths = {name: (run.cpu(role) or 0.0) / US for name, run in shown.items()}
        label = f"our {role}" if role in OURS else role
        axes.barh(
            [names.index(name) for name in shown], list(widths.values()),
            left=list(left.values()), color=colour, label=label, height=0.6,
        )  # fmt: skip
        left = {name: left[name] + widths[name] for name in shown}
    for name, run in shown.items():
        own = own_cpu_s(run)
        if own is not None:
            text = f" {microseconds(own)} µs its own"
            axes.text(left[name], names.index(name), text, va="center", fontsize=8)
    axes.set_xlim(0, 1.3 * max(left.values()))
    axes.set_yticks(range(len(names)), [_point_label(name, shown.get(name)) for name in names])
    axes.invert_yaxis()
    axes.legend(fontsize=8)
    _finish(axes, "CPU, µs a token (measured)", "", "What a token costs, by role")


def _point_label(name: str, run: FrontendRun | None) -> str:
    if run is None:
        return name
    late = "" if run.holds else "\n(does not hold)"
    return f"{name}\n{run.streams} streams, {run.t_step_s / _MS:g} ms{late}"


def _draw_over_streams(axes: Axes, details: FrontendDetails) -> None:
    """Cost of the front end over the streams, a line an engine and T_step."""
    for number, t_step_s in enumerate(details.t_steps_s):
        for engine in details.engines:
            points = [
                (run.streams, cost / US)
                for run in shown_runs(details, engine.name)
                if run.variant == PLAIN and run.t_step_s == t_step_s and (cost := own_cpu_s(run))
            ]
            if points:
                axes.plot(
                    *zip(*points, strict=True), marker=_MARKERS[number % 4], markersize=5,
                    color=_colour(details, engine.name), linewidth=1,
                    linestyle="-" if number == 0 else _DASHES[(number - 1) % 3],
                    label=f"{engine.name}, {t_step_s / _MS:g} ms",
                )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(details.streams, [count(streams) for streams in details.streams])
    axes.minorticks_off()
    _plain_ticks(axes.yaxis)
    axes.legend(fontsize=7)
    _finish(
        axes, "streams at a time", "CPU of the front end, µs a token (measured)",
        "A step's cost is shared by its streams",
    )  # fmt: skip


def _draw_beyond(axes: Axes, details: FrontendDetails) -> None:
    """Chunks a token and pace over the rate, at the most streams: what gives way at the limit."""
    most = max(details.streams)
    for engine in details.engines:
        runs = [
            run
            for run in details.runs
            if run.engine == engine.name and run.streams == most and run.variant == PLAIN
        ]
        colour = _colour(details, engine.name)
        chunks = _medians([(run.rate, run.chunks_per_token) for run in runs])
        pace = _medians([(run.rate, run.stretch and 1 / run.stretch) for run in runs])
        if chunks:
            axes.plot(*zip(*chunks, strict=True), color=colour, label=engine.name, **_CHUNKS)
        if pace:
            axes.plot(*zip(*pace, strict=True), color=colour, **_PACE)
        for limit in limits_of(details, engine.name):
            if limit.streams == most and limit.rate:
                axes.axvline(limit.rate, color=colour, linestyle="--", linewidth=0.8)
    axes.plot([], [], color="#555555", label="chunks a token", **_CHUNKS)
    axes.plot([], [], color="#555555", label="pace (1 / stretch)", **_PACE)
    axes.set_ylim(0, 1.1)
    axes.set_xscale("log")
    _plain_ticks(axes.xaxis)
    axes.legend(fontsize=7, loc="lower left")
    _finish(
        axes, f"tokens/s at {most} streams (given; dashed: the highest that holds)",
        "of the ideal (measured)", "What gives way beyond the limit",
    )  # fmt: skip


def _plain_ticks(axis: Any) -> None:
    """1, 2, 5, 10, … on an axis of logarithms."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:,g}")


def _medians(points: list[tuple[float, float | None]]) -> list[tuple[float, float]]:
    """(rate, median of the runs at it), rising, without what is missing."""
    found: dict[float, list[float]] = {}
    for x, y in points:
        if y is not None:
            found.setdefault(x, []).append(y)
    return sorted((x, median(values)) for x, values in found.items())


def _draw_against_gpu(axes: Axes, details: FrontendDetails) -> None:
    """The shortest step that holds over the streams, against T_step of the GPU."""
    for engine in details.engines:
        limits = limits_of(details, engine.name)
        points = {limit.streams: limit.held_s for limit in limits if limit.held_s is not None}
        if not points:
            continue
        colour = _colour(details, engine.name)
        ends = " (at most)" if any(limit.is_bound for limit in limits) else ""
        axes.plot(
            list(points), [seconds / _MS for seconds in points.values()], "o", markersize=5,
            color=colour, label=f"{engine.name}: shortest step that holds{ends}",
        )  # fmt: skip
        if len(points) > 1:
            _draw_between(axes, Measured.from_points(points), colour)
    for number, curve in enumerate(details.curves):
        axes.plot(
            curve.batches, [seconds / _MS for seconds in curve.seconds], color="#555555",
            linestyle=_DASHES[number % 3], linewidth=1,
            label=f"T_step, context {curve.context:,} (modelled)",
        )  # fmt: skip
    for answer in details.answers:
        if answer.batch is not None and 1 < answer.batch <= _LAST:
            axes.axvline(
                answer.batch, color=_colour(details, answer.engine), linestyle=":", linewidth=0.8
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = [1, 4, 16, 64, 256, 512]
    axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
    axes.minorticks_off()
    _plain_ticks(axes.yaxis)
    axes.legend(fontsize=7)
    _finish(
        axes, "B, streams at a time (dotted: B*)", "ms a step",
        f"The whole front end against {details.gpu}",
    )  # fmt: skip


def _draw_between(axes: Axes, host: Measured, colour: str) -> None:
    """The line that B* is read from: straight between what was measured, dashed beyond it."""
    last = host.batches[-1]
    inside = [b for b in _grid() if host.batches[0] <= b <= last]
    beyond = [last, *(b for b in _grid() if b > last)]
    for batches, style in ((inside, "-"), (beyond, (0, (1, 2)))):
        axes.plot(
            batches, [host(batch) / _MS for batch in batches], color=colour, linewidth=1.2,
            linestyle=style,
        )  # fmt: skip


def _grid() -> list[float]:
    return [2 ** (step / 8) for step in range(8 * _LAST.bit_length() - 7)]
