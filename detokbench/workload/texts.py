"""The texts that come with the package, and texts of the user's."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import no_such

# Up to the full stop of any of the scripts, or a newline, and the spaces after it.
_SENTENCE = re.compile(r".+?(?:[.!?。！？।။។።]+\s+|[。！？]|\n+|\Z)", re.DOTALL)
# Parts of at most 100 characters where there are spaces to part at, else of any length.
_LONG = re.compile(r".{1,100}(?:\s+|\Z)|\S+\s*", re.DOTALL)
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
            raise usage_error(no_such("text", name, text_names()))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DetokbenchError(f"cannot read the text {path.name}: {error}") from error
    if not text.strip():
        raise usage_error(f"the text {path.name} is empty")
    return text


def sentences(text: str) -> list[str]:
    """Parts of a text that end with a sentence or a line, what follows them included.

    Scripts without such ends come in parts between spaces instead, a few words each.
    """
    return [part for whole in _SENTENCE.findall(text) for part in _LONG.findall(whole)]


def paragraphs(text: str) -> list[str]:
    """Parts of a text between blank lines, each with its blank line again at its end."""
    return [part + "\n\n" for part in text.split("\n\n") if part.strip()]
