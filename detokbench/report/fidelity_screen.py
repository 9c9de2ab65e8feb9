"""One screen of a ``fidelity`` record: texts, differences, costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detokbench.records.fidelity import (
    FidelityDetails,
    PairCost,
    PairTexts,
    TextDifference,
    fidelity_details,
)
from detokbench.records.schema import Record
from detokbench.report.fidelity_reading import read_fidelity, verdict
from detokbench.report.units import digits_for, microseconds, significant
from detokbench.report.verify_text import plain, quoted
from detokbench.verify.show import id_list

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_MOST_TEXT = 60


def print_fidelity(record: Record, console: Console) -> None:
    """Heading, texts, the differences with their smallest streams, costs, warnings."""
    details = fidelity_details(record)
    for line in _heading(record, details):
        console.print(line, highlight=False)
    console.print(_text_table(details))
    for difference in (d for pair in details.texts for d in pair.differences):
        for words in _difference_lines(difference):
            console.print(words, highlight=False, markup=False)
    for known in details.known:
        if any(known.name in pair.known for pair in details.texts):
            console.print(f"known, {known.name}: {known.says}.", highlight=False, markup=False)
    if details.costs:
        console.print(_cost_table(details))
    console.print()
    for sentence in read_fidelity(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in record.warnings:
        console.print(f"! {plain(warning)}", highlight=False, markup=False, style="yellow")


def engine_names(details: FidelityDetails) -> str:
    """The engines with their versions."""
    return ", ".join(f"{engine.name} {engine.version}" for engine in details.engines)


def _heading(record: Record, details: FidelityDetails) -> Iterator[Text]:
    from rich.text import Text

    title = Text(f"fidelity · {engine_names(details)} · {details.fuzz:,} random streams each")
    title.stylize("bold", 0, len("fidelity"))
    yield title
    packages = record.packages
    yield Text(
        f"tokenizers {packages.get('tokenizers')} · transformers {packages.get('transformers')} · "
        f"{record.machine['python']} · {record.machine['cpu']} · run {record.created}"
    )


def _text_table(details: FidelityDetails) -> Table:
    table = _plain_table()
    for head in ("texts", "vocabulary"):
        table.add_column(head, no_wrap=True)
    for head in ("streams", "runs", "differ", "known"):
        table.add_column(head, justify="right", no_wrap=True)
    for pair in details.texts:
        table.add_row(f"{pair.ours} : {pair.theirs}", pair.vocab, *_text_cells(pair))
    return table


def _text_cells(pair: PairTexts) -> list[str]:
    if pair.why_not:
        return ["–", "–", "–", "–"]
    known = sum(pair.known.values())
    return [f"{pair.streams:,}", f"{pair.runs:,}", f"{pair.differing:,}", f"{known:,}"]


def _difference_lines(difference: TextDifference) -> Iterator[str]:
    facts = difference.input
    how = f"known, {difference.known}" if difference.known else "not known"
    size = facts.ids_per_step or "all"
    stops = f", stop {', '.join(map(quoted, facts.stop))}" if facts.stop else ""
    stops += f", stop ids {id_list(facts.stop_ids)}" if facts.stop_ids else ""
    yield (
        f"{how}: {difference.what} on {facts.vocab}, {difference.runs} runs; smallest: prompt "
        f"[{id_list(facts.prompt)}] output [{id_list(facts.output)}], {size} ids a step{stops}"
    )
    yield f"   ours   {_cut(difference.ours)}"
    yield f"   theirs {_cut(difference.theirs)}"


def _cut(text: str) -> str:
    shown = quoted(text)
    return shown if len(shown) <= _MOST_TEXT else f"{shown[:_MOST_TEXT]}…"


def _cost_table(details: FidelityDetails) -> Table:
    table = _plain_table()
    table.add_column("cost, µs a token", no_wrap=True)
    for head in ("B", "ours", "theirs", "ours / theirs", "95 %"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for cost in details.costs:
        table.add_row(
            f"{cost.ours} : {cost.theirs}",
            str(cost.batch),
            *_cost_cells(cost),
            verdict(cost, details.tolerance),
        )
    return table


def _cost_cells(cost: PairCost) -> list[str]:
    if cost.ratio is None or cost.ours_s is None or cost.theirs_s is None:
        return ["–", "–", "–", "–"]
    digits = digits_for(cost.ratio, cost.ci_low, cost.ci_high)
    interval = "–"
    if cost.ci_low is not None and cost.ci_high is not None:
        interval = f"{significant(cost.ci_low, digits)} – {significant(cost.ci_high, digits)}"
    ours, theirs = microseconds(cost.ours_s), microseconds(cost.theirs_s)
    return [ours, theirs, significant(cost.ratio, digits), interval]


def _plain_table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
