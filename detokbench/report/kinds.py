"""What each kind of record is shown with: its title, its screen and its chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detokbench.errors import usage_error
from detokbench.records.schema import Record
from detokbench.records.store import read_record
from detokbench.report.charts import measure_c_figure, save_figure
from detokbench.report.encode_chart import encode_figure
from detokbench.report.encode_screen import print_encode
from detokbench.report.fidelity_chart import fidelity_figure
from detokbench.report.fidelity_screen import print_fidelity
from detokbench.report.frontend_chart import frontend_figure
from detokbench.report.frontend_parts_chart import parts_figure
from detokbench.report.frontend_parts_screen import print_parts
from detokbench.report.frontend_screen import print_frontend
from detokbench.report.measure_c_screen import print_measure_c
from detokbench.report.pipeline_chart import pipeline_figure
from detokbench.report.pipeline_screen import print_pipeline
from detokbench.report.probe_chart import probe_figure
from detokbench.report.probe_screen import print_probe
from detokbench.report.sweep_chart import sweep_figure
from detokbench.report.sweep_screen import print_sweep
from detokbench.report.tail_str_chart import tail_str_figure
from detokbench.report.tail_str_screen import print_tail_str
from detokbench.report.time_step_chart import time_step_figure
from detokbench.report.time_step_screen import print_time_step
from detokbench.report.verify_chart import verify_figure
from detokbench.report.verify_screen import print_verify

_BAD_CONTENT = (
    LookupError,
    ValueError,
    TypeError,
    ArithmeticError,
    AssertionError,
    StopIteration,
    msgspec.ValidationError,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console


class Kind(NamedTuple):
    """How a record is shown, from the record alone."""

    title: str
    print_screen: Callable[[Record, Console], None]
    make_figure: Callable[[Record], Figure | None]
    """None where the record has nothing to draw."""


KINDS: dict[str, Kind] = {
    "measure-c": Kind(
        "What a tokenizer round trip and a token cost", print_measure_c, measure_c_figure
    ),
    "sweep": Kind("At which batch the host falls behind", print_sweep, sweep_figure),
    "encode": Kind("What turning prompts into ids costs", print_encode, encode_figure),
    "tail-str": Kind("What stop strings cost the scheduler", print_tail_str, tail_str_figure),
    "time-step": Kind(
        "How long the GPU takes for a decode step", print_time_step, time_step_figure
    ),
    "verify": Kind("Which paths keep text right", print_verify, verify_figure),
    "fidelity": Kind(
        "Whether our paths do what the engine's classes do", print_fidelity, fidelity_figure
    ),
    "probe": Kind("What a server streams, seen from outside", print_probe, probe_figure),
    "pipeline": Kind("Whether the host keeps up, live", print_pipeline, pipeline_figure),
    "frontend-parts": Kind(
        "Where the CPU of vLLM's Python front end goes", print_parts, parts_figure
    ),
    "frontend": Kind("What an engine's whole front end costs", print_frontend, frontend_figure),
}


def kind_of(record: Record) -> Kind:
    """The kind of a record. Raises DetokbenchError, exit code 2, where it is not known."""
    kind = KINDS.get(record.kind)
    if kind is None:
        raise usage_error(
            f"cannot show a record of kind '{record.kind}'; this detokbench knows "
            f"{', '.join(KINDS)}"
        )
    return kind


def read_known(path: Path) -> Record:
    """Load a record that can be shown. Raises DetokbenchError, exit code 2, for any other file."""
    record = read_record(path)
    kind_of(record)
    return record


@contextmanager
def shown_from(path: Path) -> Iterator[None]:
    """Name the file where what is in it cannot be shown: damaged, or of a form that has changed.

    Raises DetokbenchError, exit code 2, in place of the errors that such contents lead to.
    """
    try:
        yield
    except _BAD_CONTENT as error:
        why = f"{type(error).__name__} {error}".strip()
        raise usage_error(
            f"{path.name} is damaged, or was made by another version: {why}"
        ) from error


def draw_chart(record: Record, beside: Path, replace: bool = False) -> list[Path]:
    """Draw a record's chart next to a path, as PNG and SVG. Returns the files, none or two.

    ``replace`` says whether files of these names may be written over.
    """
    figure = kind_of(record).make_figure(record)
    return [] if figure is None else save_figure(figure, beside, replace)
