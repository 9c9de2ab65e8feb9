"""Lets torchvision be imported where its compiled part does not load.

SGLang imports torchvision, whose wheels are built for CUDA; next to a torch for the CPU they fail
for want of two operators' schemas. Text needs neither operator, so the schemas are defined.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_held: list[object] = []  # a library that is collected takes its schemas with it


def install() -> None:
    """Have the first import of torchvision in this process define what it lacks."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            _define_what_is_missing()


def _define_what_is_missing() -> None:
    spec = importlib.machinery.PathFinder.find_spec("torchvision")
    folders = (spec and spec.submodule_search_locations) or []
    libraries = [library for folder in folders for library in Path(folder).glob("_C*.so")]
    if not libraries:
        return
    import torch

    try:
        torch.ops.load_library(libraries[0])
    except OSError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for schema in _SCHEMAS:
            library.define(schema)
        _held.append(library)
