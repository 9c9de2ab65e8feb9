"""How a tokenizer marks the space before a word, and what its decode does to it."""

from __future__ import annotations

import msgspec

from detokbench.vocab.audit_structure import links, state_of
from detokbench.vocab.mistral import MistralTokenizer
from detokbench.vocab.vocabulary import Vocabulary

_SAMPLE = "one two"


class LeadingSpace(msgspec.Struct, frozen=True, kw_only=True):
    """The marker of a leading space, and the loss of it where an id is decoded alone."""

    marker: str | None
    where: str | None
    """The part of the tokenizer that puts the marker in."""
    seen_by_vllm: bool
    """Whether vLLM restores the space of a token's text: it looks for Metaspace only
    (0.33.0, ``get_leading_space_marker``)."""
    stripped_by: str | None
    """The part that drops a space at the start of every decode."""
    lost: LostSpace | None
    """Measured on sample text; None where every id keeps its space."""


class LostSpace(msgspec.Struct, frozen=True, kw_only=True):
    """Ids whose text alone lacks the space that it has in context."""

    ids: tuple[int, ...]
    alone: str
    in_context: str


def leading_space(vocabulary: Vocabulary) -> LeadingSpace:
    """What the parts of ``vocabulary`` say about leading spaces, and one measured example."""
    marker, where = _marker(vocabulary)
    return LeadingSpace(
        marker=marker,
        where=where,
        seen_by_vllm=where is not None and where.startswith("Metaspace"),
        stripped_by=_stripped_by(vocabulary),
        lost=_lost_space(vocabulary),
    )


def _marker(vocabulary: Vocabulary) -> tuple[str | None, str | None]:
    rust = vocabulary.rust
    if rust is None:
        tokenizer = vocabulary.tokenizer
        is_spm = isinstance(tokenizer, MistralTokenizer) and not tokenizer.is_tekken
        return ("▁", "SentencePiece itself") if is_spm else (None, None)
    pre_tokenizer = state_of(rust.pre_tokenizer)
    for link in links(pre_tokenizer):
        if link["type"] == "Metaspace":
            bare = pre_tokenizer is not None and pre_tokenizer["type"] == "Metaspace"
            place = "as the pre-tokenizer" if bare else "in the pre-tokenizer's Sequence"
            return link["replacement"], f"Metaspace {place}"
    for link in links(state_of(rust.normalizer)):
        if link["type"] == "Replace" and link["pattern"].get("String") == " ":
            return link["content"], "the normaliser's Replace"
    return None, None


def _stripped_by(vocabulary: Vocabulary) -> str | None:
    rust = vocabulary.rust
    if rust is None:
        _, where = _marker(vocabulary)
        return where
    for link in links(state_of(rust.decoder)):
        if link["type"] == "Strip" and link["start"]:
            return f"the decoder's Strip {link['start']}"
        if link["type"] == "Metaspace" and link.get("prepend_scheme") != "never":
            return "the Metaspace decoder"
    return None


def _lost_space(vocabulary: Vocabulary) -> LostSpace | None:
    ids = vocabulary.encode(_SAMPLE)
    whole = vocabulary.decode(ids)
    for cut in range(1, len(ids)):
        start = vocabulary.decode(ids[:cut])
        alone, in_context = vocabulary.decode(ids[cut:]), whole[len(start) :]
        if whole.startswith(start) and in_context == f" {alone}":
            return LostSpace(ids=tuple(ids[cut:]), alone=alone, in_context=in_context)
    return None
