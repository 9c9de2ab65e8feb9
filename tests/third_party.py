"""Paths of a third party, installed for one test: a module and an entry point in a folder."""

import os
from pathlib import Path

_MODULE = '''
from itertools import count

class {name}:
    """{name} of a third party."""
    name = "{entry}"
    whose = "a test"
    expected_to_fail = {expected!r}
    thread_counts = (None,)

    def __init__(self, vocabulary):
        self.decode = vocabulary.tokenizer.decode
        self.next_row = count()

    @staticmethod
    def why_not(vocabulary):
        return None

    def open(self, prompts, flags=None):
        return [next(self.next_row) for _ in prompts]

    def step(self, rows, new_ids):
        {step}

    def end(self, row):
        return ""
'''


def install(folder: Path, entry: str, step: str, expected: str = "") -> dict[str, str]:
    """Write a path named ``entry`` whose ``step`` is this code; the environment that finds it."""
    name = entry.title().replace("-", "") + "Path"
    module = entry.replace("-", "_") + "_module"
    (folder / f"{module}.py").write_text(
        _MODULE.format(name=name, entry=entry, step=step, expected=expected)
    )
    return register(folder, "detokbench.paths", entry, f"{module}:{name}")


def register(folder: Path, group: str, entry: str, target: str) -> dict[str, str]:
    """Metadata of a package in ``folder`` with this entry point; the environment that finds it."""
    package = entry.replace("-", "_") + "_package"
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry} = {target}\n")
    return {**os.environ, "PYTHONPATH": str(folder)}
