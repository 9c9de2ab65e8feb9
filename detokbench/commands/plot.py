"""``detokbench plot``: the charts of records, drawn again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from detokbench.errors import ExitCode

HELP = """\
Draw the charts of records again, as PNG and SVG, from the files alone.

A chart lies beside its record, under the same name, and replaces an earlier drawing. The files
written are listed on standard output.
"""


def plot(
    records: Annotated[
        list[str], typer.Argument(metavar="RECORD…", help="The .json files of runs, of any kind.")
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FOLDER", help="Where to draw them.  [default: beside each record]"
        ),
    ] = None,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.records.store import chart_places
    from detokbench.report.charts import chart_files
    from detokbench.report.kinds import draw_chart, read_known, shown_from

    paths = [Path(name) for name in dict.fromkeys(records)]
    loaded = [read_known(path) for path in paths]
    places = chart_places(paths, None if out is None else Path(out))
    for path, record, place in zip(paths, loaded, places, strict=True):
        earlier = [chart.name for chart in chart_files(place) if chart.exists()]
        with shown_from(path):
            charts = draw_chart(record, place, replace=True)
        for chart in charts:
            typer.echo(str(chart))
        if not charts:
            print(f"{path}: no chart, since there is nothing in it to draw", file=sys.stderr)
        elif earlier:
            print(f"replaced: {', '.join(earlier)}", file=sys.stderr)
    return ExitCode.OK
