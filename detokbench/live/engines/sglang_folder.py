"""The folder that takes our plug-in into SGLang's processes: on PYTHONPATH, nothing installed."""

from __future__ import annotations

import shutil
from pathlib import Path

from detokbench.live.engines import sglang_plugin

PACKAGE = "detokbench_sglang_plugin"
PLUGIN_NAME = "detokbench"
_METADATA = "Metadata-Version: 2.1\nName: detokbench-sglang-plugin\nVersion: 1\n"
_ENTRY_POINTS = f"[sglang.srt.plugins]\n{PLUGIN_NAME} = {PACKAGE}:register\n"
# Python imports the first sitecustomize that it finds; one that ours hides is run after it.
_SITECUSTOMIZE = f"""\
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from {PACKAGE}.torchvision_schemas import install

install()
here = str(Path(__file__).parent)
hidden = PathFinder.find_spec("sitecustomize", [p for p in sys.path if p != here])
if hidden is not None and hidden.loader is not None:
    code = hidden.loader.get_code("sitecustomize")
    exec(code, {{"__name__": "sitecustomize", "__file__": hidden.origin}})
"""


def lay_plugin(folder: Path) -> Path:
    """Copy the plug-in into a folder of ``folder``, with its entry point; returns that one."""
    place = folder / "plugin"
    metadata = place / f"{PACKAGE}-1.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    shutil.copytree(
        Path(sglang_plugin.__file__).parent,
        place / PACKAGE,
        ignore=shutil.ignore_patterns("__pycache__"),
        dirs_exist_ok=True,
    )
    (metadata / "METADATA").write_text(_METADATA)
    (metadata / "entry_points.txt").write_text(_ENTRY_POINTS)
    (place / "sitecustomize.py").write_text(_SITECUSTOMIZE)
    return place
