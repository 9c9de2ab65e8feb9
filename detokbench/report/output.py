"""Where output goes: the table or the record on standard output, all else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from detokbench.records.schema import Record


def show_measure_c(record: Record, path: Path, charts: list[Path], as_json: bool) -> None:
    """Print one screen, or with ``as_json`` the record; say where the files are."""
    from detokbench.records.store import encode
    from detokbench.report.measure_c_screen import print_measure_c

    if as_json:
        sys.stdout.buffer.write(encode(record))
        sys.stdout.buffer.flush()
    else:
        from detokbench.report.console import make_console

        print_measure_c(record, make_console())
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
