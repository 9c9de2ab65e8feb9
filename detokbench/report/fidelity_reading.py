"""What a ``fidelity`` record says, in a few sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from detokbench.records.fidelity import FidelityDetails, PairCost, fidelity_details
from detokbench.records.schema import Record
from detokbench.report.units import significant


def read_fidelity(record: Record) -> list[str]:
    """A sentence on the texts, one on the costs, and one on each version not tried before."""
    return list(_sentences(fidelity_details(record)))


def verdict(cost: PairCost, tolerance: tuple[float, float]) -> str:
    """``alike`` within the tolerance, ``apart`` outside it; empty where nothing was timed.

    With an interval that reaches over a limit it cannot be told.
    """
    low, high = tolerance
    if cost.ratio is None:
        return ""
    if cost.ci_low is None or cost.ci_high is None:
        return "alike" if low <= cost.ratio <= high else "apart"
    if low <= cost.ci_low and cost.ci_high <= high:
        return "alike"
    if cost.ci_high < low or cost.ci_low > high:
        return "apart"
    return "not told"


def _sentences(details: FidelityDetails) -> Iterator[str]:
    compared = [pair for pair in details.texts if not pair.why_not]
    runs = sum(pair.runs for pair in compared)
    differing = sum(pair.differing for pair in compared)
    known = sum(sum(pair.known.values()) for pair in compared)
    if runs:
        aside = f", {known:,} in a known way" if known else ""
        what = "differ in what is not known" if differing else "differ in nothing else"
        count = f"{differing:,} " if differing else "the rest "
        if not differing and not known:
            yield f"Every delta of {runs:,} runs is the same in ours and in the engine's."
        else:
            yield f"Of {runs:,} runs{aside}; {count}{what}."
    yield from _on_costs(details)
    for engine in details.engines:
        if engine.version not in engine.tried:
            yield (
                f"{engine.name} {engine.version} has not been tried before; tried: "
                f"{', '.join(engine.tried)}."
            )


def _on_costs(details: FidelityDetails) -> Iterator[str]:
    ratios = [cost.ratio for cost in details.costs if cost.ratio is not None]
    if not ratios:
        return
    low, high = details.tolerance
    yield (
        f"Ours costs {significant(min(ratios), 2)} to {significant(max(ratios), 2)} times what "
        f"theirs does; from {low} to {high} counts as alike."
    )
    apart = [cost for cost in details.costs if verdict(cost, details.tolerance) == "apart"]
    for cost in apart:
        yield f"{cost.ours} does not cost what {cost.theirs} does at B = {cost.batch}."
