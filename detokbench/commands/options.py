"""The options that the measuring commands share, each in one place."""

from typing import Annotated, TypeVar

import typer

from detokbench.errors import usage_error

_Given = TypeVar("_Given", str | None, list[str] | None)


def only_utf8(param: typer.CallbackParam, given: _Given) -> _Given:
    """A text as it was given. Raises a usage error for bytes of the shell that are no UTF-8.

    They reach us as lone surrogates, which nothing can encode: no record could be stored.
    """
    texts = [given] if isinstance(given, str) else given or []
    if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
        raise usage_error(f"{param.opts[0]}: the text is not valid UTF-8")
    return given


ScenarioOption = Annotated[
    str, typer.Option("--scenario", metavar="NAME|FILE", help="What to run, whose texts.")
]
VocabOption = Annotated[
    str | None,
    typer.Option(
        "--vocab",
        metavar="NAME|PATH|HUB-ID",
        help="Vocabulary; see 'detokbench vocab list'.  [default: the scenario's]",
    ),
]
PathsOption = Annotated[
    str | None,
    typer.Option("--paths", metavar="LIST", help="Paths, with commas.  [default: all installed]"),
]
QuickOption = Annotated[bool, typer.Option("--quick", help="2 processes: a first look.")]
RigorousOption = Annotated[
    bool, typer.Option("--rigorous", help="Many processes, minutes: for figures to quote.")
]
GcOption = Annotated[
    bool, typer.Option("--gc", help="Leave Python's garbage collector on while timing.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Order of texts and of cells.")
]
OutOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="PATH",
        help="Where the record goes: a folder or a .json file.  [default: results]",
    ),
]
ChartOption = Annotated[
    bool, typer.Option("--chart/--no-chart", help="Draw a chart (PNG, SVG) beside the record.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Write the record to standard output, no table.")
]
TrustOption = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let a hub vocabulary run code of its own.")
]
