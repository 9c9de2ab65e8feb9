"""Whether an engine's path can run: built once and given a few ids before anyone measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detokbench.errors import DetokbenchError
from detokbench.paths.installed_engine import Engine, named, why_absent

if TYPE_CHECKING:
    from detokbench.vocab.vocabulary import Vocabulary

_PROBE = "a b"


def why_not_of(engine: Engine, path_class: Any, vocabulary: Vocabulary) -> str | None:
    """Why a path of an engine cannot run on a vocabulary, by streaming two characters through it.

    The engine is absent, cannot be imported, or its internals are not those that the path is built
    upon; then what is missing is named.
    """
    absent = why_absent(engine)
    if absent is not None:
        return absent
    try:
        _stream(path_class(vocabulary), vocabulary.encode(_PROBE))
    except DetokbenchError as error:
        return str(error)
    except Exception as error:
        why = " ".join(str(error).split())
        return f"{named(engine)} fails on '{_PROBE}': {type(error).__name__}: {why}"
    return None


def _stream(path: Any, ids: list[int]) -> None:
    """With a prompt, one id a step, and to the end: every call that a measurement makes."""
    (row,) = path.open([ids[:1]])
    for token_id in ids:
        path.step([row], [[token_id]])
    path.end(row)
