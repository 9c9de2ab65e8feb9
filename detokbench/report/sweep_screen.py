"""One screen of a sweep's record."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from detokbench.model.crossover import Answer, Crossover
from detokbench.model.crossover_interval import CrossoverInterval
from detokbench.records.schema import Record
from detokbench.records.sweep import Crossing, Sweep
from detokbench.report.measure_c_rows import label
from detokbench.report.sweep_front_ends import (
    front_end_notes,
    measured_front_ends,
    whole_front_ends,
)
from detokbench.report.sweep_reading import host_step_s, read_sweep
from detokbench.report.units import count, microseconds, milliseconds
from detokbench.tstep.curves import TStepCurve

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 100


def print_sweep(record: Record, console: Console) -> None:
    """Heading, host costs, B*, intervals and front ends, and what it means."""
    sweep = Sweep(record)
    for line in _heading(sweep):
        console.print(line, highlight=False)
    console.print(_crossing_table(sweep, console.width))
    if console.width < _WIDE:
        console.print(f"(a terminal of {_WIDE} columns shows the costs and the ranges of B*)")
    for line in _notes(sweep):
        console.print(line, highlight=False)
    console.print(_interval_table(sweep))
    for sentence in read_sweep(sweep):
        console.print(f"• {sentence}", highlight=False)
    for warning in record.warnings:
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")
    if record.partial:
        done, wanted = record.settings["processes_finished"], record.settings["processes"]
        console.print(
            f"! partial: {done} of {wanted} processes finished; --resume does the rest",
            highlight=False,
            style="yellow",
        )


def _heading(sweep: Sweep) -> list[str]:
    record, deployment = sweep.record, sweep.options.deployment
    source = sweep.curves[0].source
    against = {
        "given": "a T_step that was given",
        "measured": "T_step as measured on a device",
    }.get(
        source,
        f"the roofline (modelled) of {deployment.model.name} in {deployment.weights}, KV in "
        f"{deployment.kv}, on {deployment.tp} x {deployment.gpu.title}",
    )
    return [
        f"[bold]sweep[/] · {record.vocabulary['name']} on {record.machine['cpu']}, "
        f"{record.machine['cpus_usable']} CPUs (measured, {record.settings['processes_finished']} "
        f"processes) · against {against}",
        f"tokenizers {record.packages['tokenizers']} · transformers "
        f"{record.packages['transformers']} · {record.machine['python']} · {record.created}",
    ]


def _crossing_table(sweep: Sweep, width: int) -> Table:
    from rich import box
    from rich.table import Table

    batch, engines = sweep.options.at_batch, sweep.options.engines_per_frontend
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(f"B*, host late above\n({_what_counts(sweep)})", no_wrap=True)
    if width >= _WIDE:
        table.add_column(f"µs a row and step\nB={batch}: decode", justify="right")
        table.add_column("all\n", justify="right")
    for curve in sweep.curves:
        name = _curve_name(curve) if width >= _WIDE else _curve_name(curve).split()[-1]
        table.add_column(f"{name}\ndecode | all", justify="right")
    cells = _cells_by_path(sweep)
    for cost in sweep.costs:
        crossings = [_crossing(found, with_range=width >= _WIDE) for found in cells[cost.key]]
        pairs = zip(crossings[::2], crossings[1::2], strict=True)
        costs = [
            microseconds(_decode_row_s(sweep, cost.key, batch) * engines),
            microseconds(host_step_s(sweep, cost, batch) / batch),
        ]
        table.add_row(
            label(*cost.key) + _mark(sweep, cost.path),
            *(costs if width >= _WIDE else []),
            *(f"{decode} | {sending}" for decode, sending in pairs),
        )
    table.add_section()
    for whole in whole_front_ends(sweep):
        wide = ["", whole.token_us(batch)] if width >= _WIDE else []
        found = [_point(whole.crossover(curve)) for curve in sweep.curves]
        table.add_row(whole.label, *wide, *found)
    return table


def _mark(sweep: Sweep, path: str) -> str:
    """``*`` for a path that is known to give wrong text."""
    verdicts = {result.path: result.verdict for result in sweep.record.gate}
    return " *" if verdicts.get(path) == "expected" else ""


def _what_counts(sweep: Sweep) -> str:
    parts = ["k = 1"]
    if sweep.options.ids_per_step > 1:
        parts.append(f"{sweep.options.ids_per_step} ids a step")
    if sweep.options.engines_per_frontend > 1:
        parts.append(f"{sweep.options.engines_per_frontend} engines a front end")
    return ", ".join(parts)


def _curve_name(curve: TStepCurve) -> str:
    where = "" if curve.context is None else f" L={count(curve.context)}"
    return f"{curve.source}{where}"


def _cells_by_path(sweep: Sweep) -> dict[tuple[str, int | None], list[CrossoverInterval]]:
    """For each path B* by curve: decoding only, then with sending."""
    found: dict[tuple[str, int | None], dict[tuple[int, str], Crossing]] = {}
    for crossing in sweep.crossings():
        place = (sweep.curves.index(crossing.curve), crossing.counted)
        found.setdefault((crossing.path, crossing.threads), {})[place] = crossing
    return {
        key: [
            by_place[number, counted].found
            for number in range(len(sweep.curves))
            for counted in ("decode", "all")
        ]
        for key, by_place in found.items()
    }


def _decode_row_s(sweep: Sweep, key: tuple[str, int | None], batch: int) -> float:
    row = next(
        row
        for row in sweep.record.rows
        if row.metric == "host_step"
        and (row.path, row.threads) == key
        and row.batch == batch
        and row.stream_interval in {None, 1}
    )
    return (row.median or 0.0) / batch


def _crossing(found: CrossoverInterval, with_range: bool) -> str:
    """``412 (403–420)``, ``never``, ``~897`` beyond what was measured, ``no fit``."""
    shown = _point(found.point)
    if found.point.answer is Answer.CROSSES and with_range:
        low, high = (_bound(batch) for batch in (found.low_batch, found.high_batch))
        return f"{shown} ({low}–{high})" if low != high else shown
    return shown


def _point(found: Crossover) -> str:
    if found.answer in {Answer.CROSSES, Answer.EXTRAPOLATED}:
        return f"{'~' if found.answer is Answer.EXTRAPOLATED else ''}{found.batch:,.0f}"
    return {Answer.NEVER: "never", Answer.DOES_NOT_FIT: "no fit"}.get(found.answer, "always")


def _bound(batch: float) -> str:
    return f"{batch:,.0f}" if math.isfinite(batch) else "∞"


def _notes(sweep: Sweep) -> list[str]:
    rows = sweep.record.rows
    parts = {row.path: row.median or 0.0 for row in rows if row.metric == "chunk"}
    notes = [
        "A chunk (measured): output object "
        f"{microseconds(parts['object'])} µs, JSON by pydantic "
        f"{microseconds(parts['json-pydantic'])} (by msgspec "
        f"{microseconds(parts['json-msgspec'])}), SSE frame {microseconds(parts['sse-frame'])}. "
        "all: decoding and sending; in vLLM one process does both, in SGLang one decodes and "
        "another sends, and the slower counts. In brackets the 95 % range; ~: beyond the measured "
        "batches; no fit: the crossing lies beyond memory; *: wrong text."
    ]
    texts = [row for row in rows if row.metric == "logprobs"]
    if texts:
        listed = ", ".join(
            f"{row.path.removeprefix('logprobs-')}: {microseconds(row.median or 0.0)} µs"
            for row in texts
        )
        counted = "counted in" if len(texts) == 1 else "not counted in"
        notes.append(f"Text of log-probabilities a token, by alternatives ({counted}): {listed}.")
    checks = [row for row in rows if row.metric == "both_checks"]
    if checks:
        overlap = (
            "hidden up to T_step by the overlap"
            if sweep.options.overlap
            else "added to T_step, since overlap is off"
        )
        notes.append(
            f"Stop checks of SGLang's scheduler: {microseconds(checks[0].median or 0.0)} µs a "
            f"request and step at k = 1, {overlap}. vLLM's search over characters is not counted."
        )
    return notes + front_end_notes(sweep)


def _interval_table(sweep: Sweep) -> Table:
    from rich import box
    from rich.table import Table

    batch = sweep.options.at_batch
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(f"at B = {batch}:\nsmallest k / front ends")
    for curve in sweep.curves:
        fits = "" if curve.fits(batch) else " (no fit)"
        table.add_column(
            f"{_curve_name(curve)}\nT_step {milliseconds(curve(batch))} ms{fits}", justify="right"
        )
    for cost in sweep.costs:
        cells = []
        for curve in sweep.curves:
            interval = sweep.smallest_interval(cost, curve, batch)
            processes = sweep.processes(cost, curve, batch)
            cells.append(f"{interval or 'none'} / {processes or 'none'}")
        table.add_row(label(*cost.key), *cells)
    for whole in measured_front_ends(sweep):
        table.add_row(whole.label, *(f"– / {whole.needed(curve, batch)}" for curve in sweep.curves))
    return table
