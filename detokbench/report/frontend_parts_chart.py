"""Chart of a ``frontend-parts`` record: the parts one upon the other, beside the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.frontend_parts import PartsDetails, details_of
from detokbench.records.schema import Record
from detokbench.report.charts import figures
from detokbench.report.frontend_parts_reading import TITLES
from detokbench.report.units import US, milliseconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#000000", "#E69F00", "#F0E442", "#009E73", "#CC79A7",
            "#666666", "#aaaaaa", "#cccccc", "#eeeeee")  # fmt: skip


def parts_figure(record: Record) -> Figure:
    """A bar of measured parts and one of the whole for each number of streams; the profile last."""
    details = details_of(record)
    figure = figures()(figsize=(9, 1.6 + 0.55 * (2 * len(details.at) + 1)), layout="constrained")
    axes = figure.subplots()
    bars = _bars(details)
    colours = dict(zip(TITLES, _COLOURS, strict=True))
    for place, (_, parts) in enumerate(bars):
        left = 0.0
        for name, value_us in parts.items():
            axes.barh(place, value_us, left=left, color=colours.get(name, "#bbbbbb"))
            left += value_us
    shown = [name for name in TITLES if any(name in parts for _, parts in bars)]
    handles = [axes.barh([0], [0], color=colours[name], label=TITLES[name]) for name in shown]
    figure.legend(handles=handles, loc="outside right center", fontsize=8)
    axes.set_yticks(range(len(bars)), [label for label, _ in bars])
    axes.invert_yaxis()
    axes.set_xlabel("µs of CPU a token")
    axes.set_title(
        f"{details.engine} {details.version}, a step every {milliseconds(details.t_step_s)} ms, "
        f"{details.parser}",
        fontsize=9,
    )
    return figure


def _bars(details: PartsDetails) -> list[tuple[str, dict[str, float]]]:
    bars = []
    for at in details.at:
        parts = {p.name: max(p.s_per_token, 0.0) / US for p in at.parts if p.in_sum}
        bars.append((f"B = {at.streams}: parts", parts))
        bars.append((f"B = {at.streams}: whole", {"whole": at.whole_s / US}))
    if details.profile:
        most = max(details.at, key=lambda at: at.streams)
        shares = {part.name: part.share for part in details.profile}
        parts = {name: shares[name] * most.whole_s / US for name in TITLES if name in shares}
        bars.append((f"B = {most.streams}: profile", parts))
    return bars
