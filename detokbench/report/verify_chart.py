"""Chart of a ``verify`` record: the matrix of paths × laws, each cell with all vocabularies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detokbench.records.schema import Record
from detokbench.records.verify import Cell, Verdict, VerifyDetails, verify_details
from detokbench.report.charts import COLOURS, figures
from detokbench.report.verify_matrix import head
from detokbench.report.verify_verdicts import MARKS, vocabularies, worst

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLACK = COLOURS[6]
# Fill and mark of each verdict: from pale to dark the worse it is, for grey print.
_LOOKS: dict[Verdict, tuple[str, str]] = {
    "pass": ("#dcecf7", "#3d7ea6"),
    "differs": (COLOURS[1], "#ffffff"),
    "error": (_BLACK, "#ffffff"),
    "n/a": ("#f2f2f2", "#9a9a9a"),
}
_WORDS: dict[Verdict, str] = {
    "pass": "kept",
    "differs": "broken",
    "error": "broken: it raised",
    "n/a": "does not apply",
}
_STRIP_IN = 0.21
_LEAST_CELL_IN = 0.72
_ROW_IN = 0.46
_LEAST_WIDTH_IN = 8.0
_MARGIN = 0.05
"""Between cells, in cells."""
_FIGURE_SHARE = 0.36
"""Of a cell's height, for what a law measures, where there is such a figure."""


def verify_figure(record: Record) -> Figure | None:
    """The matrix, a strip for each vocabulary in every cell; None where nothing was judged."""
    details = verify_details(record)
    names = vocabularies(details)
    if not names or not details.paths:
        return None
    figure_class = figures()
    wide = max(_LEAST_CELL_IN, _STRIP_IN * len(names)) * len(details.laws)
    tall = _ROW_IN * len(details.paths)
    figure = figure_class(
        figsize=(max(_LEAST_WIDTH_IN, wide + 1.6), tall + 1.5), layout="constrained"
    )
    axes = figure.subplots()
    _draw_frame(axes, details)
    cells = {(cell.path, cell.law, cell.vocab): cell for cell in details.cells}
    for row, path in enumerate(details.paths):
        for column, law in enumerate(details.laws):
            found = [cells.get((path, law.name, name)) for name in names]
            _draw_cell(axes, column, row, found, worst(details, path, law.name).figure)
    _draw_keys(figure, axes, names, bool(set(details.required) & set(details.paths)))
    axes.set_title("Which paths keep which laws of right text", fontsize=10, pad=8)
    figure.suptitle(_caption(record, details), fontsize=8, color="#444444")
    return figure


def _caption(record: Record, details: VerifyDetails) -> str:
    packages = record.packages
    fuzz = f" ({details.fuzz:,} random, seed {details.seed})" if details.fuzz else ""
    return (
        f"{details.streams:,} streams{fuzz} · detokbench {record.detokbench} · "
        f"tokenizers {packages['tokenizers']} · transformers {packages['transformers']} · "
        f"{record.machine['python']} · {record.created[:10]}"
    )


def _draw_frame(axes: Axes, details: VerifyDetails) -> None:
    axes.set_xlim(0, len(details.laws))
    axes.set_ylim(len(details.paths), 0)
    axes.xaxis.tick_top()
    heads = [head(law.name) for law in details.laws]
    axes.set_xticks([number + 0.5 for number in range(len(heads))], heads, fontsize=9)
    names = [f"{path} *" if path in details.required else path for path in details.paths]
    axes.set_yticks([number + 0.5 for number in range(len(names))], names, fontsize=9)
    for label, path in zip(axes.get_yticklabels(), details.paths, strict=True):
        label.set_fontweight("bold" if path in details.required else "normal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_cell(axes: Axes, column: int, row: int, found: list[Cell | None], figure: str) -> None:
    """A strip for each vocabulary, with its mark, and below them the worst figure."""
    width = (1 - 2 * _MARGIN) / len(found)
    height = 1 - 2 * _MARGIN - (_FIGURE_SHARE if figure else 0)
    for number, cell in enumerate(found):
        left = column + _MARGIN + number * width
        _draw_strip(axes, left, row + _MARGIN, width, height, cell.verdict if cell else "n/a")
    if figure:
        axes.text(
            column + 0.5, row + 1 - _MARGIN - _FIGURE_SHARE / 2, figure, ha="center", va="center",
            fontsize=7, color="#222222",
        )  # fmt: skip


def _draw_strip(
    axes: Axes, left: float, top: float, width: float, height: float, verdict: Verdict
) -> None:
    from matplotlib.patches import Rectangle

    fill, ink = _LOOKS[verdict]
    axes.add_patch(
        Rectangle((left, top), width, height, facecolor=fill, edgecolor="white", linewidth=0.8)
    )
    axes.text(
        left + width / 2, top + height / 2, MARKS[verdict], ha="center", va="center_baseline",
        fontsize=8, color=ink, fontweight="bold" if verdict in {"differs", "error"} else "normal",
    )  # fmt: skip


def _draw_keys(figure: Figure, axes: Axes, names: list[str], has_required: bool) -> None:
    """What the marks mean, and which vocabulary a strip is."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=_LOOKS[verdict][0], edgecolor="#bbbbbb", label=f"{MARKS[verdict]} {words}")
        for verdict, words in _WORDS.items()
    ]
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0, -0.01), ncols=len(handles),
        frameon=False, fontsize=8, borderaxespad=0.2, columnspacing=1.4,
    )  # fmt: skip
    words = [
        f"with {names[0]}" if len(names) == 1 else f"in a cell, from the left: {', '.join(names)}"
    ]
    if has_required:
        words.append("* must be right")
    figure.supxlabel("   ·   ".join(words), fontsize=8, color="#222222")
