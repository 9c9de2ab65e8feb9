"""Where output goes: the table or the record on standard output, all else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from detokbench.records.schema import Record


def show_record(
    record: Record, path: Path, charts: list[Path], *, as_json: bool, check_model: bool = False
) -> None:
    """Print one screen, or with ``as_json`` the record; say where the files are.

    ``check_model`` adds to the screen of a sweep how true the model is to it.
    """
    from detokbench.records.store import encode

    if as_json:
        sys.stdout.buffer.write(encode(record))
        sys.stdout.buffer.flush()
    else:
        print_record(record, check_model=check_model)
    drawn = "".join(f", {chart.name}" for chart in charts)
    print(f"record: {path}{drawn}", file=sys.stderr)


def print_record(record: Record, *, check_model: bool = False) -> None:
    """Print the screen of a record of any kind on standard output."""
    from detokbench.report.console import make_console
    from detokbench.report.kinds import kind_of
    from detokbench.report.model_check import print_model_check

    console = make_console()
    kind_of(record).print_screen(record, console)
    if check_model:
        print_model_check(record, console)


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
