"""The texts that come with the package, and texts of the user's."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import nearest

_FOLDER = Path(__file__).parent / "texts"


@cache
def _shipped() -> dict[str, Path]:
    paths = [*_FOLDER.glob("*.txt"), *sorted(_FOLDER.glob("scripts/*.txt"))]
    return {path.stem: path for path in paths}


def text_names() -> list[str]:
    """Names of the shipped texts."""
    return list(_shipped())


def script_names() -> list[str]:
    """Names of the texts that the gate streams: one for each script, code, numbers and emoji."""
    return [name for name, path in _shipped().items() if path.parent.name == "scripts"]


def load_text(name: str, beside: Path | None = None) -> str:
    """A shipped text by name, or a UTF-8 file; a relative path is looked up in ``beside``.

    Raises DetokbenchError: exit code 2 for an unknown name, 5 for a file that cannot be read.
    """
    path = _shipped().get(name)
    if path is None:
        path = (beside or Path()) / name
        if not path.is_file():
            raise usage_error(f"unknown text '{name}'{nearest(name, text_names())}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DetokbenchError(f"cannot read the text {path.name}: {error}") from error
    if not text.strip():
        raise usage_error(f"the text {path.name} is empty")
    return text


def paragraphs(text: str) -> list[str]:
    """Parts of a text between blank lines, each with its blank line again at its end."""
    return [part + "\n\n" for part in text.split("\n\n") if part.strip()]
