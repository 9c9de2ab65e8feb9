"""The ways from token ids to text, one file each, behind one protocol (``protocol.py``)."""

from detokbench.paths.protocol import DetokPath, Flags, PathClass
from detokbench.paths.registry import load_path_class, path_names

__all__ = ["DetokPath", "Flags", "PathClass", "load_path_class", "path_names"]
