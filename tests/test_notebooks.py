"""The notebooks run top to bottom, and are committed with what they show."""

import shutil
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def mime_types(notebook):
    return {mime for output in outputs(notebook) for mime in output.get("data", {})}


def shows_tables_and_charts(notebook):
    return {"text/html", "image/png"} <= mime_types(notebook)


def went_wrong(notebook):
    """Errors, and warnings, which go to standard error."""
    return [
        output
        for output in outputs(notebook)
        if output.output_type == "error" or output.get("name") == "stderr"
    ]


def test_there_is_one_for_each_kind():
    assert [path.stem for path in NOTEBOOKS] == ["c", "crossover", "t_step", "tail_str"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_the_reference_records_alone(path, tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    copy = Path(shutil.copy(path, folder))
    reference = tmp_path / "results" / "reference"
    reference.mkdir(parents=True)
    for record in (ROOT / "results" / "reference").glob("*.json"):
        shutil.copy(record, reference)
    notebook = nbformat.read(copy, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs = []
    nbclient.NotebookClient(
        notebook, timeout=100, resources={"metadata": {"path": str(folder)}}
    ).execute()
    assert went_wrong(notebook) == []
    assert shows_tables_and_charts(notebook)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_as_it_ran(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.outputs for cell in cells[1:]), "run: python notebooks/execute.py"
    assert went_wrong(notebook) == []
    assert shows_tables_and_charts(notebook)
    assert "language_info" not in notebook.metadata
    assert all(cell.metadata == {} for cell in notebook.cells)
