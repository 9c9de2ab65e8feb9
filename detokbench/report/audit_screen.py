"""One screen of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detokbench.bench.stop_sets import printable
from detokbench.report.audit_reading import read_audit
from detokbench.report.audit_rows import Fact, id_facts, structure_facts, token_facts
from detokbench.report.units import microseconds
from detokbench.vocab.audit import Audit
from detokbench.vocab.audit_ids import IdSet
from detokbench.vocab.audit_stops import StopFacts, StopList

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_LONGEST_STOP = 18


def print_audit(audit: Audit, console: Console) -> None:
    """Heading, facts with what follows from them, costs, stops, and what matters most."""
    vocabulary = audit.vocabulary
    versions = " · ".join(f"{name} {version}" for name, version in audit.packages.items())
    console.print(
        f"[bold]audit[/] · {vocabulary['name']}: {vocabulary['ids']:,} ids, "
        f"{vocabulary['tokenizer']} ({vocabulary['source']}) · {versions}\n",
        highlight=False,
    )
    for facts in (structure_facts(audit), id_facts(audit), token_facts(audit)):
        console.print(_grid(facts))
        console.print()
    console.print(_property_table(audit))
    if audit.stops is not None:
        console.print(_stop_table(audit.stops))
        for line in _stop_notes(audit.stops):
            console.print(line, highlight=False, markup=False)
    for sentence in read_audit(audit):
        console.print(f"• {sentence}", highlight=False, markup=False)


def _grid(facts: Sequence[Fact]) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=18)
    grid.add_column(overflow="fold")
    for fact in facts:
        text = Text(printable(fact.found))
        if fact.so_what:
            text.append(f" → {printable(fact.so_what)}", style="bold")
        grid.add_row(Text(fact.name), text)
    return grid


def _property_table(audit: Audit) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("measured,\nµs an access", overflow="fold")
    for header in ("as it\ncomes", "behind\nvLLM's proxy"):
        table.add_column(header, justify="right", overflow="fold")
    table.add_column("", overflow="fold")
    for cost in audit.properties:
        if cost.cached_s is None:
            note = "vLLM puts no proxy round it"
        else:
            note = "" if cost.is_cached else "not cached by vLLM"
        cached = "–" if cost.cached_s is None else microseconds(cost.cached_s)
        table.add_row(cost.name, microseconds(cost.uncached_s), cached, note)
    return table


def _stop_table(stops: StopList) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("stop", overflow="fold", max_width=_LONGEST_STOP)
    for header in ("vLLM holds\nchars", "encode\nids", "fewest–\nmost", "SGLang's\nwindow"):
        table.add_column(header, justify="right", overflow="fold")
    for header in ("most\nfits", "can\nmatch"):
        table.add_column(header, overflow="fold")
    for stop in stops.stops:
        table.add_row(Text(printable(stop.text)), *_stop_cells(stop))
    if len(stops.stops) > 1:
        table.add_row("all", f"{stops.hold_back_chars}", "", "", f"{stops.window_tokens}", "", "")
    return table


def _stop_cells(stop: StopFacts) -> list[str]:
    most = "–"
    if stop.shortest is not None and stop.longest is not None:
        most = f"{stop.shortest.tokens}–{stop.longest.tokens}"
    fits = {True: "yes", False: "no", None: "–"}[stop.longest_fits]
    mark = "*" if stop.space_in_front else ""
    return [
        f"{stop.hold_back_chars}",
        f"{stop.canonical.tokens}{mark}",
        most,
        f"{stop.window_tokens}",
        fits,
        stop.match,
    ]


def _stop_notes(stops: StopList) -> list[str]:
    notes = ["The window is widened by the ids a step brings, less one."]
    if any(stop.space_in_front for stop in stops.stops):
        notes.append("* encode puts a space in front, which counts.")
    return [*notes, *(line for stop in stops.stops for line in _notes_of(stop))]


def _notes_of(stop: StopFacts) -> list[str]:
    name = f"'{printable(stop.text)}'"
    lines = [f"{name}: {stop.why}."] if stop.why else []
    if stop.match == "if spelt" and stop.shortest is not None:
        lines.append(f"{name}: ordinary ids that spell it: {_list(stop.shortest.ids)}.")
    fused = [
        f"{_ids(ids)} {what}"
        for ids, what in (
            (stop.fused, "hold it and more"),
            (stop.fused_before, "run into its beginning"),
            (stop.fused_after, "run past its end"),
        )
        if ids is not None and ids.count
    ]
    if fused:
        lines.append(f"{name}: {'; '.join(fused)}.")
    return lines


def _ids(ids: IdSet) -> str:
    unit = "id" if ids.count == 1 else "ids"
    return f"{ids.count:,} {unit} ({_list(ids.examples[:2])}{', …' if ids.count > 2 else ''})"


def _list(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
