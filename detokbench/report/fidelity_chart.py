"""Chart of a ``fidelity`` record: the cost of ours over that of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.fidelity import fidelity_details
from detokbench.records.schema import Record
from detokbench.report.charts import COLOURS, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fidelity_figure(record: Record) -> Figure | None:
    """A dot a pair and batch, with its interval; None where no cost was compared."""
    details = fidelity_details(record)
    costs = [cost for cost in details.costs if cost.ratio is not None]
    if not costs:
        return None
    pairs = list(dict.fromkeys((cost.ours, cost.theirs) for cost in costs))[::-1]
    batches = list(dict.fromkeys(cost.batch for cost in costs))
    figure = figures()(figsize=(8, 1.6 + 0.6 * len(pairs)), layout="constrained")
    axes = figure.subplots()
    low, high = details.tolerance
    axes.axvspan(low, high, color="#eeeeee", zorder=0)
    axes.axvline(1, color="#888888", linewidth=1, zorder=1)
    named: set[int] = set()
    for cost in costs:
        assert cost.ratio is not None
        place = batches.index(cost.batch)
        height = pairs.index((cost.ours, cost.theirs))
        offset = 0.2 * (place - (len(batches) - 1) / 2)
        left = cost.ratio if cost.ci_low is None else cost.ci_low
        right = cost.ratio if cost.ci_high is None else cost.ci_high
        axes.errorbar(
            cost.ratio, height - offset, xerr=[[cost.ratio - left], [right - cost.ratio]],
            fmt="os^D"[place % 4], color=COLOURS[place % len(COLOURS)], markersize=5,
            label=None if cost.batch in named else f"B = {cost.batch}",
        )  # fmt: skip
        named.add(cost.batch)
    axes.set_yticks(range(len(pairs)), [f"{ours} : {theirs}" for ours, theirs in pairs])
    axes.set_ylim(-0.6, len(pairs) - 0.4)
    axes.set_xlabel("cost of a token by ours over theirs (measured; grey: counts as alike)")
    axes.grid(axis="x", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="best")
    engines = ", ".join(f"{engine.name} {engine.version}" for engine in details.engines)
    figure.suptitle(
        f"{engines} · {record.vocabulary['name']} · {record.scenario['name']} · "
        f"{record.settings['processes_finished']} processes · {record.machine['cpu']} · "
        f"{record.created[:10]}",
        fontsize=8, color="#444444",
    )  # fmt: skip
    return figure
