"""Where output goes: the table or the record on standard output, all else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from detokbench.records.schema import Record

if TYPE_CHECKING:
    from rich.console import Console


def show_measure_c(record: Record, path: Path, charts: list[Path], as_json: bool) -> None:
    """Print one screen, or with ``as_json`` the record; say where the files are."""
    from detokbench.report.measure_c_screen import print_measure_c

    _show(print_measure_c, record, path, charts, as_json)


def show_tail_str(record: Record, path: Path, charts: list[Path], as_json: bool) -> None:
    """The same for a ``tail-str`` record."""
    from detokbench.report.tail_str_screen import print_tail_str

    _show(print_tail_str, record, path, charts, as_json)


def show_time_step(record: Record, path: Path, charts: list[Path], as_json: bool) -> None:
    """The same for a ``time-step`` record."""
    from detokbench.report.time_step_screen import print_time_step

    _show(print_time_step, record, path, charts, as_json)


def show_sweep(
    record: Record, path: Path, charts: list[Path], as_json: bool, check_model: bool
) -> None:
    """The same for a ``sweep`` record, and on demand how true the model is to it."""
    from detokbench.report.model_check import print_model_check
    from detokbench.report.sweep_screen import print_sweep

    def print_screen(record: Record, console: Console) -> None:
        print_sweep(record, console)
        if check_model:
            print_model_check(record, console)

    _show(print_screen, record, path, charts, as_json)


def _show(
    print_screen: Callable[[Record, Console], None],
    record: Record,
    path: Path,
    charts: list[Path],
    as_json: bool,
) -> None:
    from detokbench.records.store import encode

    if as_json:
        sys.stdout.buffer.write(encode(record))
        sys.stdout.buffer.flush()
    else:
        from detokbench.report.console import make_console

        print_screen(record, make_console())
    drawn = "".join(f", {chart.name}" for chart in charts)
    print(f"record: {path}{drawn}", file=sys.stderr)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error while it is a terminal; silent otherwise."""
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda what, share: progress.update(task, description=what, completed=share)
