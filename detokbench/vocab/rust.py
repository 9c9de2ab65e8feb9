"""Telling Rust tokenizers from Python ones, as the engines do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def rust_tokenizer_of(tokenizer: Any) -> Tokenizer | None:
    """The ``tokenizers.Tokenizer`` inside a transformers tokenizer, or None for a Python one.

    vLLM asks for transformers' class around the Rust crate, whose public name changed in
    transformers 5; the attribute ``_tokenizer`` that it then uses has been stable.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        return None
    inner = tokenizer._tokenizer
    return inner if isinstance(inner, Tokenizer) else None
