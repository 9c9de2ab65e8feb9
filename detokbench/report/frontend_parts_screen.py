"""One screen of a ``frontend-parts`` record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.frontend_parts import REQUESTS, PartsAt, PartsDetails, details_of
from detokbench.records.schema import Record
from detokbench.report.frontend_parts_reading import TITLES, read_parts, warnings_of
from detokbench.report.units import microseconds, milliseconds, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def print_parts(record: Record, console: Console) -> None:
    """Heading, the table of parts, sentences, warnings."""
    details = details_of(record)
    machine = record.machine
    console.print(
        f"[bold]frontend-parts[/] · {details.engine} {details.version} · {details.loop}, "
        f"{details.parser} · a step every {milliseconds(details.t_step_s)} ms · "
        f"{record.settings['rounds']} rounds in turns, windows of {details.window_s:g} s",
        highlight=False,
    )
    console.print(
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs, load {machine['load_1min']} before it · "
        f"{machine['python']} · measured {record.created}",
        highlight=False,
    )
    console.print(_table(details))
    console.print(
        "A part is what vLLM's own classes cost with it less without it, in CPU time of a process "
        "that runs them up to there at the server's pace; medians over rounds. Profile: shares of "
        "py-spy's samples of the real server.",
        highlight=False,
    )
    for sentence in read_parts(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in warnings_of(record):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _table(details: PartsDetails) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("part", overflow="fold")
    for at in details.at:
        table.add_column(f"B = {at.streams}\nµs a token", justify="right")
        table.add_column("\n%", justify="right")
    table.add_column(f"profile\nB = {max(at.streams for at in details.at)}, %", justify="right")
    for name, title in TITLES.items():
        cells = [cell for at in details.at for cell in _cells(details, at, name)]
        table.add_row(title, *cells, _share(details.profile_share(name)))
    table.add_section()
    sums = [(at.sum_s, at.share) for at in details.at]
    table.add_row("sum of the measured parts", *_pairs(sums), "")
    table.add_row("whole front end", *_pairs([(at.whole_s, 1.0) for at in details.at]), "100")
    return table


def _cells(details: PartsDetails, at: PartsAt, name: str) -> list[str]:
    if name == REQUESTS:
        of_request = details.requests_s(at)
        if of_request <= 0:  # lost in the noise
            return ["–", "–"]
        return [f"({microseconds(of_request)})", f"({_share(of_request / at.whole_s)})"]
    part = next((part for part in at.parts if part.name == name), None)
    if part is None:
        return ["–", "–"]
    cost = microseconds(part.s_per_token)
    if not part.in_sum:
        return [f"(+{cost})", "–"]
    return [cost, _share(part.s_per_token / at.whole_s)]


def _pairs(values: list[tuple[float, float]]) -> list[str]:
    return [cell for cost, share in values for cell in (microseconds(cost), _share(share))]


def _share(share: float | None) -> str:
    return "–" if share is None else percent(share)
