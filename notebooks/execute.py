"""Run every notebook of this folder top to bottom and store its outputs in it.

``python notebooks/execute.py``, with the ``test`` extra installed. What differs between machines
and runs (versions, times of execution) is left out, so that a diff shows only what changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def execute(path: Path) -> None:
    """Run one notebook in its own folder. Raises CellExecutionError where a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=120, record_timing=False, resources=resources).execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.from_dict({})
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or sorted(HERE.glob("*.ipynb"))):
        execute(path)
        print(path)
