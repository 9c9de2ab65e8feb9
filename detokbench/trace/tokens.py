"""A list of single tokens: what each is by itself, and what it is in its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from detokbench.errors import usage_error
from detokbench.verify.stream import one_line
from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.token_text import TokenText, token_texts
from detokbench.vocab.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ListedToken:
    """``alone`` is one decode of the id by itself, None where that raises ``error``."""

    text: TokenText
    alone: str | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class TokenList:
    """``context`` are the ids before the first token; None stands for the inside of a text."""

    vocabulary: str
    context: tuple[Any, ...] | None
    tokens: list[ListedToken]


def list_tokens(
    vocabulary: Vocabulary, context: Sequence[Any] | None, ids: Sequence[Any]
) -> TokenList:
    """Special tokens have their text. Raises a usage error where ids have no bytes."""
    try:
        texts = token_texts(vocabulary, ids, context)
    except UnsupportedFamilyError as error:
        raise usage_error(f"no bytes are known to the ids of {vocabulary.name}: {error}") from error
    tokens = [_listed(vocabulary, text) for text in texts]
    return TokenList(vocabulary.name, None if context is None else tuple(context), tokens)


def _listed(vocabulary: Vocabulary, text: TokenText) -> ListedToken:
    token_id: Any = text.token_id
    try:
        return ListedToken(text, vocabulary.decode([token_id], skip_special_tokens=False))
    except Exception as error:
        return ListedToken(text, None, one_line(error))
