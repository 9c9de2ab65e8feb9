"""Clean-up of spaces, and what asking for a slow tokenizer gives today: both tried, not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from detokbench.vocab.audit_structure import links, state_of
from detokbench.vocab.registry import known_vocabularies
from detokbench.vocab.vocabulary import Vocabulary

_SAMPLE = "Well . It 's fine , is n't it ?"


class CleanUp(msgspec.Struct, frozen=True, kw_only=True):
    """Whether decode takes spaces out before punctuation, measured on sample text."""

    flag: bool | None
    """``clean_up_tokenization_spaces`` as set; None where the tokenizer has no such flag."""
    applied: bool
    """Whether decode's text differs from that with the flag off."""
    applied_if_asked: bool
    """Whether it would with the flag on."""
    by_decoder: bool
    """Whether the decoder itself cleans up, whatever the flag."""
    sample: str
    decoded: str
    error: str | None


class SlowMode(msgspec.Struct, frozen=True, kw_only=True):
    """What ``AutoTokenizer.from_pretrained(use_fast=False)`` gives."""

    tried: bool
    class_name: str | None
    """The class that it gave; None where it was not tried or failed."""
    ignored: bool | None
    """Whether it is the class that was given without it; None where that is not known."""
    note: str


def clean_up(vocabulary: Vocabulary) -> CleanUp:
    """Decode sample text with the flag as set, off and on."""
    tokenizer: Any = vocabulary.tokenizer
    flag = getattr(tokenizer, "clean_up_tokenization_spaces", None)
    decoder = None if vocabulary.rust is None else state_of(vocabulary.rust.decoder)
    by_decoder = any(bool(link.get("cleanup")) for link in links(decoder))
    try:
        ids = vocabulary.encode(_SAMPLE)
        as_set = tokenizer.decode(ids)
        off = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        on = tokenizer.decode(ids, clean_up_tokenization_spaces=True)
        error = None
    except Exception as raised:  # a tokenizer of the user's own code need not know the flag
        as_set = off = on = ""
        error = f"{type(raised).__name__} when asked"
    return CleanUp(
        flag=flag,
        applied=as_set != off,
        applied_if_asked=on != off,
        by_decoder=by_decoder,
        sample=_SAMPLE,
        decoded=as_set,
        error=error,
    )


def slow_mode(vocabulary: Vocabulary, name: str, trust_remote_code: bool) -> SlowMode:
    """Load ``name`` again with ``use_fast=False``, where AutoTokenizer can load it at all."""
    known = {known.name for known in known_vocabularies()}
    if name in known or Path(name).is_file():
        return _not_tried()
    from transformers import AutoTokenizer

    try:
        slow: Any = AutoTokenizer.from_pretrained(
            name, use_fast=False, trust_remote_code=trust_remote_code
        )
    except Exception as error:
        return SlowMode(
            tried=True,
            class_name=None,
            ignored=False,
            note=f"fails: {type(error).__name__}",
        )
    given, got = type(vocabulary.tokenizer).__name__, type(slow).__name__
    note = f"ignored: it gives {got} all the same" if got == given else f"gives {got}, not {given}"
    return SlowMode(tried=True, class_name=got, ignored=got == given, note=note)


def _not_tried() -> SlowMode:
    from transformers import __version__

    ignores = int(__version__.partition(".")[0]) >= 5
    does = "ignores it" if ignores else "gives a Python class"
    note = f"not tried, since AutoTokenizer did not load this; transformers {__version__} {does}"
    return SlowMode(tried=False, class_name=None, ignored=ignores, note=note)
