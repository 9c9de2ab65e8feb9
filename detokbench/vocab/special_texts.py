"""The texts of special tokens, and what they mean for stop strings."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.stops.validation import stop_warnings
from detokbench.vocab.vocabulary import Vocabulary


def special_texts(vocabulary: Vocabulary) -> dict[str, int]:
    """The text of each special token → its id."""
    if vocabulary.rust is None:
        tokenizer = vocabulary.tokenizer
        return dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    decoder = vocabulary.rust.get_added_tokens_decoder()
    return {token.content: i for i, token in decoder.items() if token.special}


def warnings_about_stops(
    vocabulary: Vocabulary, strings: Sequence[str], skip_special_tokens: bool
) -> list[str]:
    """``stop_warnings`` with the special tokens of a vocabulary."""
    if not strings:
        return []
    return stop_warnings(strings, special_texts(vocabulary), skip_special_tokens)
