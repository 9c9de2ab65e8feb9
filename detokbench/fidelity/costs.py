"""Cost of ours over cost of theirs, both timed in the same processes, interleaved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detokbench.bench.manager import Manager
from detokbench.bench.plan import FLOOR, Cell, Effort, LoadRequest
from detokbench.bench.rows import Key, rows_of, samples_by_key
from detokbench.bench.run import Collected, collect, without_folders
from detokbench.bench.statistics import paired_ratios, summarize
from detokbench.fidelity.pairs import Pair
from detokbench.records.fidelity import PairCost
from detokbench.records.schema import NotApplicable, ProcessRun, Row
from detokbench.workload.scenario import Scenario


@dataclass
class Costs:
    """What was timed. Empty where no pair's cost was asked for, or none applies."""

    run: Collected = field(default_factory=Collected)
    scenario: Scenario | None = None
    vocabulary: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    pairs: list[PairCost] = field(default_factory=list)
    not_applicable: list[NotApplicable] = field(default_factory=list)


def measure_costs(
    pairs: Sequence[Pair],
    scenario: Scenario,
    text_folder: Path,
    effort: Effort,
    seed: int,
    keep_gc: bool,
    trust_remote_code: bool,
    progress: Callable[[str, float], None],
) -> Costs:
    """Time both paths of every pair at the scenario's batches.

    A worker that dies, or Ctrl-C, ends it early and is kept in ``run.error``; raised where no
    process had finished.
    """
    compared = [pair for pair in pairs if pair.costs]
    if not compared:
        return Costs()
    names = list(dict.fromkeys(name for pair in compared for name in (pair.ours, pair.theirs)))
    load = LoadRequest(
        vocabulary=scenario.vocabulary, trust_remote_code=trust_remote_code, paths=names
    )
    with Manager(load, effort.processes) as manager:
        progress("preparing the timing", 0.0)
        prepared = manager.prepare(scenario, text_folder, seed, run_gate=False)
        absent = {entry.path for entry in prepared.not_applicable}
        compared = [p for p in compared if not {p.ours, p.theirs} & absent]
        costs = Costs(vocabulary=prepared.vocabulary, not_applicable=prepared.not_applicable)
        costs.scenario = without_folders(scenario, prepared.vocabulary["name"])
        if not compared:
            return costs
        cells = _cells(compared, scenario.batches)
        costs.run = collect(
            manager.measure(
                cells, scenario, effort, seed, keep_gc, lambda share: progress("timing", share)
            )
        )
    costs.rows = rows_of(cells, costs.run.finished, {}, [], costs.scenario)
    costs.pairs = list(_ratios(compared, costs.run.finished, costs.scenario))
    return costs


def _cells(pairs: Sequence[Pair], batches: Sequence[int]) -> list[Cell]:
    names = dict.fromkeys(name for pair in pairs for name in (pair.ours, pair.theirs))
    floor = [Cell(path=FLOOR, metric="floor", batch=batch) for batch in batches]
    paths = [Cell(path=name, metric="per_token", batch=b) for name in names for b in batches]
    return floor + paths


def _ratios(
    pairs: Sequence[Pair], processes: Sequence[ProcessRun], scenario: Scenario
) -> list[PairCost]:
    samples = samples_by_key(processes)

    def of(path: str, batch: int) -> list[float | None]:
        key = Key.of(Cell(path=path, metric="per_token", batch=batch))
        return samples.get(key, [None] * len(processes))

    return [
        _cost(pair, batch, of(pair.ours, batch), of(pair.theirs, batch), scenario.vocabulary)
        for pair in pairs
        for batch in scenario.batches
    ]


def _cost(
    pair: Pair,
    batch: int,
    ours: Sequence[float | None],
    theirs: Sequence[float | None],
    vocab: str,
) -> PairCost:
    ratios = paired_ratios(ours, theirs)
    summary = summarize(ratios) if ratios else None
    return PairCost(
        ours=pair.ours,
        theirs=pair.theirs,
        vocab=vocab,
        batch=batch,
        ours_s=_median(ours),
        theirs_s=_median(theirs),
        ratio=summary.median if summary else None,
        ci_low=summary.ci_low if summary else None,
        ci_high=summary.ci_high if summary else None,
        ratios=ratios,
    )


def _median(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return summarize(present).median if present else None
