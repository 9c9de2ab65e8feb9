"""One screen of a ``frontend`` record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from detokbench.records.frontend import (
    PLAIN,
    STRETCH_AT_MOST,
    FrontendDetails,
    FrontendEngine,
    FrontendRun,
    details_of,
)
from detokbench.records.schema import Record
from detokbench.report.frontend_reading import read_frontend
from detokbench.report.frontend_runs import (
    answer_text,
    limits_of,
    rate_text,
    roles_worth_showing,
    shown_runs,
)
from detokbench.report.units import microseconds, milliseconds, percent, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MEDIUM, _WIDE = 100, 118


def print_frontend(record: Record, console: Console) -> None:
    """Heading; a table an engine; the limits and what follows for a GPU; sentences, warnings."""
    details = details_of(record)
    for line in _heading(record, details):
        console.print(line, highlight=False)
    for engine in details.engines:
        console.print(_runs_table(details, engine, console.width))
    if details.limits:
        console.print(_limits_table(details))
    if details.answers:
        console.print(_answers_table(details))
    console.print(_legend(details), highlight=False, markup=False)
    for sentence in read_frontend(record):
        console.print(f"• {sentence}", highlight=False, markup=False)
    for warning in _warnings(record, details):
        console.print(f"! {warning}", highlight=False, markup=False, style="yellow")


def _heading(record: Record, details: FrontendDetails) -> list[str]:
    vocabulary, machine = record.vocabulary, record.machine
    engines = ", ".join(f"{engine.name} {engine.version}" for engine in details.engines)
    several = "" if details.front_ends == 1 else f" · {details.front_ends} front-end processes"
    return [
        f"[bold]frontend[/] · {engines}{several} · {vocabulary['name']}: {vocabulary['ids']:,} ids",
        f"{machine['cpu']}, {machine['cpus_usable']} CPUs, load {machine['load_1min']} before it · "
        f"{machine['python']} · measured {record.created}",
        f"our engine, a clock for a GPU → front end → our clients · closed streams of "
        f"{details.max_tokens} ids, prompts of {details.prompt_len} · windows of "
        f"{record.settings['window_s']:g} s",
    ]


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, title=title,
        title_justify="left", title_style="bold",
    )  # fmt: skip
    for header in headers:
        words = header in {"", "engine", "request", "beyond it"}
        table.add_column(header, justify="left" if words else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _runs_table(details: FrontendDetails, engine: FrontendEngine, width: int) -> Table:
    runs = shown_runs(details, engine.name)
    roles = roles_worth_showing(runs)
    has_variants = any(run.variant != PLAIN for run in runs)
    with_ttft = width >= _WIDE and not has_variants
    headers = ["streams", "T_step\nms", "tokens\n/s", *(_role_header(role) for role in roles)]
    headers += ["chunks\n/token", "stretch"]
    if width >= _MEDIUM:
        headers += ["ITL\np50", "\np99 ms"]
    headers += ["lag\np50", "\np99 ms"]
    if with_ttft:
        headers += ["TTFT\np50 ms"]
    rows = [_run_cells(run, roles, width, with_ttft) for run in runs]
    title = f"{engine.name} {engine.version}: µs of CPU a token by role, and what readers saw"
    headers.append("")
    if has_variants:
        headers.append("request")
        rows = [[*row, run.variant] for row, run in zip(rows, runs, strict=True)]
    return _table(headers, rows, title)


def _role_header(role: str) -> str:
    names = {"engine": "our\nengine", "client": "our\nclient", "detokenizer": "detok-\nenizer",
        "supervisor": "super-\nvisor"}  # fmt: skip
    return names.get(role, role)


def _run_cells(run: FrontendRun, roles: list[str], width: int, with_ttft: bool) -> list[str]:
    cells = [f"{run.streams}", milliseconds(run.t_step_s), f"{run.rate:,.0f}"]
    cells += [_us(run.cpu(role)) for role in roles]
    cells += [_ratio(run.chunks_per_token, 2), _ratio(run.stretch, 3)]
    if width >= _MEDIUM:
        cells += [_ms(run.itl.p50), _ms(run.itl.p99)]
    cells += [_ms(run.lag.p50), _ms(run.lag.p99)]
    if with_ttft:
        cells.append(_ms(run.ttft.p50))
    return [*cells, _verdict(run)]


def _verdict(run: FrontendRun) -> str:
    if run.holds:
        return "holds"
    if run.stretch is None or run.chunks_per_token is None:
        return "no text"
    return "late" if run.stretch > STRETCH_AT_MOST else "merges"


def _us(seconds: float | None) -> str:
    return "–" if seconds is None else microseconds(seconds)


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else significant(1e3 * seconds, 2)


def _ratio(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value:.{places}f}"


def _limits_table(details: FrontendDetails) -> Table:
    rows = []
    for engine in details.engines:
        for limit in limits_of(details, engine.name):
            rows.append(
                [
                    engine.name,
                    f"{limit.streams}",
                    rate_text(limit),
                    "–" if limit.held_s is None else milliseconds(limit.held_s),
                    "–" if limit.broke_s is None else milliseconds(limit.broke_s),
                    limit.why or "nothing shorter was tried",
                ]
            )
    headers = ["engine", "streams", "tokens/s", "T_step held\nms", "did not\nms", "beyond it"]
    return _table(headers, rows, "The highest rate that holds (measured)")


def _answers_table(details: FrontendDetails) -> Table:
    batches = list(dict.fromkeys(batch for answer in details.answers for batch in answer.needed))
    headers = ["engine", "context", "B*", *(f"B = {batch}" for batch in batches)]
    rows = []
    for answer in details.answers:
        needs = [_needs(answer.needed, batch) for batch in batches]
        rows.append([answer.engine, f"{answer.context:,}", answer_text(answer), *needs])
    title = (
        f"B* of the whole front end, and front ends that a batch needs: {details.gpu}, "
        f"{details.shape} (roofline, modelled)"
    )
    return _table(headers, rows, title)


def _needs(needed: dict[int, int | None], batch: int) -> str:
    if batch not in needed:
        return "no room"  # in the GPU's memory
    need = needed[batch]
    return "none do" if need is None else f"{need}"


def _legend(details: FrontendDetails) -> str:
    return (
        f"{details.rule[0].upper()}{details.rule[1:]}. Stretch: wall over what the ids take at "
        "T_step, median stream. ITL: a gap between chunks spread over the ids of the second. Lag: "
        "from our engine's emission of a chunk's oldest id to the client. T_step is given; all "
        "else in the tables of runs is measured."
    )


def _warnings(record: Record, details: FrontendDetails) -> Iterator[str]:
    yield from record.warnings
    if record.partial:
        yield f"ended early by {details.ended_by}: later runs are missing"
    for engine in details.engines:
        for left_out in engine.left_out:
            yield f"{engine.name}: left out {left_out}"
    bound = [run for run in details.runs if run.bound_by == "client"]
    if bound:
        share = max(run.cpu_share("client") for run in bound)
        yield (
            f"client-bound: our client used up to {percent(share)} % of a core in {len(bound)} "
            "runs; limits found there are marked '≥'"
        )
    late = [run for run in details.runs if run.bound_by == "engine"]
    if late:
        yield (
            f"our engine did not get through its steps in {len(late)} runs (down to "
            f"{percent(min(run.steps_share for run in late))} % of those due): something else ran "
            "on its CPU"
        )
    if not details.is_ascii:
        yield "the text has characters that split over ids: ITL and lag hold the wait for them"
