"""The amortised model of a sweep against the cells that it was not fitted on."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from detokbench.model.check import Prediction, predict_between
from detokbench.records.schema import Record
from detokbench.records.sweep import Sweep
from detokbench.report.measure_c_rows import label
from detokbench.report.units import percent

if TYPE_CHECKING:
    from rich.console import Console


def model_errors(record: Record) -> dict[str, list[Prediction]]:
    """Predictions of every path, by its label."""
    found = {}
    for cost in Sweep(record).costs:
        cells = {
            (row.batch, row.stream_interval or 1): row.median
            for row in record.rows
            if row.metric == "host_step" and (row.path, row.threads) == cost.key and row.median
        }
        found[label(*cost.key)] = list(predict_between(cells))
    return found


def print_model_check(record: Record, console: Console) -> None:
    """A line a path and one for all: how far the model is off where it had not looked."""
    errors = model_errors(record)
    console.print(
        "Model check: from every other batch and the outer intervals, the cells between.",
        highlight=False,
    )
    for name, predictions in errors.items():
        if predictions:
            off = [abs(prediction.error) for prediction in predictions]
            console.print(
                f"  {name}: {len(off)} cells, median error {percent(median(off))} %, "
                f"worst {percent(max(off))} %",
                highlight=False,
            )
    everything = [abs(p.error) for predictions in errors.values() for p in predictions]
    if not everything:
        console.print("  no cell lies between others", highlight=False)
        return
    console.print(
        f"  all: {len(everything)} cells, median error {percent(median(everything))} %",
        highlight=False,
    )
