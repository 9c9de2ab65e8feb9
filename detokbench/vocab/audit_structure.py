"""What a tokenizer is made of, and which path each engine picks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.mistral import MistralTokenizer
from detokbench.vocab.vocabulary import Vocabulary

_LONGEST_TEXT = 12


class Structure(msgspec.Struct, frozen=True, kw_only=True):
    """The class and the parts of a tokenizer. A part that is None is not there."""

    class_name: str
    is_rust: bool
    is_fast: bool
    model: str
    normaliser: str | None
    pre_tokenizer: str | None
    post_processor: str | None
    decoder: str | None
    family: str | None
    """The family of the table of bytes; None where ``byte-table`` does not apply."""
    why_no_byte_table: str | None


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The path that an engine picks for the tokenizer, as ``detokbench paths list`` calls it."""

    engine: str
    path: str
    why: str
    """What the engine asks, and what the tokenizer answers."""
    what: str
    """What the path then does at each step."""


def structure(vocabulary: Vocabulary) -> Structure:
    """The parts of ``vocabulary`` in a few words each."""
    rust = vocabulary.rust
    kind = type(vocabulary.tokenizer)
    family, why = _family(vocabulary)
    return Structure(
        class_name=f"{kind.__name__} ({kind.__module__.partition('.')[0]})",
        is_rust=vocabulary.is_rust,
        is_fast=is_fast(vocabulary),
        model=type(rust.model).__name__ if rust is not None else _python_model(vocabulary),
        normaliser=None if rust is None else words(state_of(rust.normalizer)),
        pre_tokenizer=None if rust is None else words(state_of(rust.pre_tokenizer)),
        post_processor=None if rust is None else words(state_of(rust.post_processor)),
        decoder=f"{kind.__name__}.decode, in Python"
        if rust is None
        else words(state_of(rust.decoder)),
        family=family,
        why_no_byte_table=why,
    )


def engine_choices(vocabulary: Vocabulary) -> list[EngineChoice]:
    """What vLLM and SGLang pick.

    vLLM 0.33.0 asks for transformers' class around the Rust crate (``uses_fast_detokenizer``),
    SGLang 0.5.23 for ``is_fast`` (``DetokenizerManager._grouped_batch_decode``).
    """
    return [_vllm_choice(vocabulary), _sglang_choice(vocabulary)]


def _vllm_choice(vocabulary: Vocabulary) -> EngineChoice:
    from transformers import PreTrainedTokenizerFast

    rust_class = PreTrainedTokenizerFast.__name__
    if vocabulary.is_rust:
        return EngineChoice(
            engine="vLLM",
            path="fast",
            why=f"its class is transformers' Rust-backed {rust_class}",
            what="one DecodeStream.step a token, in Rust",
        )
    return EngineChoice(
        engine="vLLM",
        path="slow",
        why=f"its class is not transformers' Rust-backed {rust_class}",
        what="two joins of a window of tokens for each token, in Python",
    )


def _sglang_choice(vocabulary: Vocabulary) -> EngineChoice:
    if is_fast(vocabulary):
        return EngineChoice(
            engine="SGLang",
            path="batch-decode",
            why="is_fast is True",
            what="batch_decode of all rows, twice a step; decode leaves special ids out",
        )
    return EngineChoice(
        engine="SGLang",
        path="batch-decode",
        why="is_fast is False, so row by row",
        what="two decodes a row and step; special ids filtered in Python by all_special_ids",
    )


def is_fast(vocabulary: Vocabulary) -> bool:
    """``is_fast`` as SGLang reads it: False where the tokenizer does not say."""
    return bool(getattr(vocabulary.tokenizer, "is_fast", False))


def _family(vocabulary: Vocabulary) -> tuple[str | None, str | None]:
    try:
        return vocabulary.id_bytes.family, None
    except UnsupportedFamilyError as error:
        return None, str(error)


def _python_model(vocabulary: Vocabulary) -> str:
    tokenizer = vocabulary.tokenizer
    if not isinstance(tokenizer, MistralTokenizer):
        return "its own"
    return "tiktoken" if tokenizer.is_tekken else "SentencePiece"


def state_of(part: Any) -> dict[str, Any] | None:
    """A part's section of ``tokenizer.json``; the whole file would be megabytes."""
    if part is None:
        return None
    try:
        state: dict[str, Any] = json.loads(part.__getstate__())
    except Exception:  # a part written in Python cannot be saved
        return {"type": "custom"}
    return state


def links(state: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The parts of a Sequence in order, else the part itself; nothing for None."""
    if state is None:
        return []
    if state["type"] != "Sequence":
        return [state]
    members = next((value for value in state.values() if isinstance(value, list)), [])
    return [link for member in members for link in links(member)]


def words(state: dict[str, Any] | None) -> str | None:
    """A part in a few words: ``Sequence(Replace ▁→space, ByteFallback, Fuse, Strip 1)``."""
    if state is None:
        return None
    if state["type"] == "Sequence":
        return f"Sequence({', '.join(map(_link_words, links(state)))})"
    return _link_words(state)


def _link_words(link: dict[str, Any]) -> str:
    kind = str(link["type"])
    tell = _WORDS.get(kind)
    return kind if tell is None else f"{kind}{tell(link)}".rstrip()


def _template_part(part: dict[str, Any]) -> str:
    special = part.get("SpecialToken")
    return _shown(special["id"]) if special else "text"


def _pattern(pattern: dict[str, str]) -> str:
    return _shown(pattern["String"]) if "String" in pattern else "by regex"


def _shown(text: str) -> str:
    if text in {"", " "}:
        return "space" if text else "nothing"
    short = text if len(text) <= _LONGEST_TEXT * 3 else f"{text[:_LONGEST_TEXT]}…"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in short)


def _strip(link: dict[str, Any]) -> str:
    """The decoder's Strip counts characters; the normaliser's of the same name has two flags."""
    if "start" not in link:
        return ""
    return f" {link['start']}" + (f" and {link['stop']}" if link["stop"] else "")


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "Replace": lambda link: f" {_pattern(link['pattern'])}→{_shown(link['content'])}",
    "Prepend": lambda link: f" {_shown(link['prepend'])}",
    "Split": lambda link: f" {_pattern(link['pattern'])}",
    "Strip": _strip,
    "Metaspace": lambda link: f" {_shown(link['replacement'])} {link.get('prepend_scheme', '')}",
    "WordPiece": lambda link: f" {link['prefix']}" + (" with clean-up" if link["cleanup"] else ""),
    "TemplateProcessing": lambda link: f" {' '.join(map(_template_part, link['single']))}",
}
