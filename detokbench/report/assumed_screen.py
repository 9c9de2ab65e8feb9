"""The table for an assumed cost of a call: counts of calls, and where they fill T_step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detokbench.model.calls import chapter_calls
from detokbench.model.crossover import Answer, crossover
from detokbench.model.curves import Line
from detokbench.records.sweep import SweepOptions
from detokbench.report.units import count, duration, milliseconds
from detokbench.tstep.curves import TStepCurve, given_curve

if TYPE_CHECKING:
    from rich.console import Console

_PATHS = ("slow", "fast", "batch-decode", "tail_str")
_CHAPTER_T_STEP_S = 4.48e-3


def print_assumed(
    assumed_call_s: float, options: SweepOptions, batches: Sequence[int], console: Console
) -> None:
    """Calls, host time and B* by path, all of them given or modelled: nothing is measured."""
    from rich import box
    from rich.table import Table

    curves = [given_curve(options.given_s or _CHAPTER_T_STEP_S)]
    if options.given_s is None:
        curves += [options.deployment.paper_curve(c, "roofline") for c in options.contexts]
    batch = options.at_batch if options.at_batch in batches else batches[-1]
    console.print(
        f"[bold]sweep[/] · a call of {duration(assumed_call_s)} (given); nothing is measured",
        highlight=False,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("path", no_wrap=True)
    table.add_column(f"calls a step\nB={batch}", justify="right")
    table.add_column(f"host ms\nB={batch}", justify="right")
    for curve in curves:
        table.add_column(_name(curve), justify="right")
    for path in _PATHS:
        calls = chapter_calls(path, batch)
        table.add_row(
            path,
            f"{'up to ' if path == 'tail_str' else ''}{calls:,}",
            milliseconds(calls * assumed_call_s),
            *(_crossing(path, assumed_call_s, curve) for curve in curves),
        )
    console.print(table)


def _name(curve: TStepCurve) -> str:
    if curve.context is None:
        return f"B*, given\n{milliseconds(curve(1))} ms"
    return f"B*, {curve.source}\nL={count(curve.context)}"


def _crossing(path: str, assumed_call_s: float, curve: TStepCurve) -> str:
    fixed, per_sequence = chapter_calls(path, 0), chapter_calls(path, 1) - chapter_calls(path, 0)
    host = Line(fixed * assumed_call_s, per_sequence * assumed_call_s)
    found = crossover(host, curve, largest_batch=curve.largest_batch)
    return {Answer.NEVER: "never", Answer.DOES_NOT_FIT: "no fit"}.get(found.answer, found.text)
