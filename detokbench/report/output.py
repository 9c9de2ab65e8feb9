"""Where output goes: the table or the record on standard output, all else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from detokbench.errors import cannot_show
from detokbench.interrupts import uninterrupted
from detokbench.records.schema import Record


def show_record(
    record: Record, *, as_json: bool, check_model: bool = False, everything: bool = False
) -> None:
    """Print one screen, or with ``as_json`` the record.

    ``check_model`` adds to the screen of a sweep how true the model is to it; with ``everything``
    that of a ``verify`` lists all differences.
    """
    from detokbench.records.store import encode

    if as_json:
        sys.stdout.write(encode(record).decode())
        sys.stdout.flush()
    else:
        print_record(record, check_model=check_model, everything=everything)


def keep_record(
    record: Record,
    place: Path,
    *,
    as_json: bool,
    chart: bool,
    check_model: bool = False,
    everything: bool = False,
) -> None:
    """What every measuring command ends with: a record shown, stored and drawn, as ``keep`` says.

    The last two are ``show_record``'s.
    """
    from detokbench.records.store import write_record

    keep(
        record,
        show=lambda: show_record(
            record, as_json=as_json, check_model=check_model, everything=everything
        ),
        store=lambda kept: write_record(kept, place),
        draw=_draw if chart else None,
    )


def _draw(record: Record, beside: Path) -> list[Path]:
    from detokbench.report.kinds import draw_chart  # inside: a record is stored without it

    return draw_chart(record, beside)


def keep(
    record: Record,
    show: Callable[[], None],
    store: Callable[[Record], Path],
    draw: Callable[[Record, Path], list[Path]] | None,
) -> None:
    """Show a record, store it, draw its charts, and say where the files are.

    In this order, and none of them keeps the next from happening: a reader that leaves, a full
    disk, Ctrl-C or a chart that fails loses nothing else. Raises DetokbenchError where the record
    could not be stored, or not be shown.
    """
    failure: Exception | None = None
    with uninterrupted():
        try:
            show()
        except BrokenPipeError:
            pass  # the reader has left
        except Exception as error:
            failure = error
        stored = store(record)
        print(f"record: {stored}", file=sys.stderr)
    if isinstance(failure, OSError):
        raise cannot_show(failure) from failure
    if failure is not None:
        raise failure
    if draw is None:
        return
    try:
        charts = draw(record, stored)
    except Exception as error:
        print(f"! no chart: {type(error).__name__}: {error}", file=sys.stderr)
        return
    if charts:
        print(f"chart: {', '.join(chart.name for chart in charts)}", file=sys.stderr)


def print_record(record: Record, *, check_model: bool = False, everything: bool = False) -> None:
    """Print the screen of a record of any kind on standard output.

    ``everything`` is for a ``verify`` only.
    """
    from detokbench.report.console import make_console
    from detokbench.report.kinds import kind_of
    from detokbench.report.model_check import print_model_check
    from detokbench.report.verify_screen import print_verify

    console = make_console()
    if everything:
        print_verify(record, console, limit=None)
    else:
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
