"""Whether ``add_special_tokens`` is honoured, and whether a chat gets its BOS twice."""

from __future__ import annotations

from typing import Any

import msgspec

from detokbench.vocab.mistral import MistralTokenizer
from detokbench.vocab.vocabulary import Vocabulary

_TEXT = "Hello"
_CHAT = [{"role": "user", "content": _TEXT}]
_FIRST_IDS = 6
_LONGEST_ERROR = 120


class SpecialTokensAdded(msgspec.Struct, frozen=True, kw_only=True):
    """What ``encode`` puts round a text where ``add_special_tokens`` is True, measured."""

    makes_a_difference: bool
    at_start: tuple[int, ...]
    at_end: tuple[int, ...]
    bos_id: int | None
    error: str | None
    """Why it could not be tried."""


class ChatEncoding(msgspec.Struct, frozen=True, kw_only=True):
    """A rendered chat, encoded as text. ``error`` says why the template could not be rendered."""

    rendered_start: str
    first_ids: tuple[int, ...]
    """Without special tokens added."""
    first_ids_with_special: tuple[int, ...]
    doubled: tuple[int, ...]
    """The ids that the template renders and ``encode`` adds once more."""
    error: str | None


def special_tokens_added(vocabulary: Vocabulary) -> SpecialTokensAdded:
    """Encode a text with and without special tokens and compare the ids."""
    bos = getattr(vocabulary.tokenizer, "bos_token_id", None)
    bos_id = bos if isinstance(bos, int) else None
    try:
        plain, special = _encode(vocabulary, _TEXT, False), _encode(vocabulary, _TEXT, True)
    except Exception as error:
        return SpecialTokensAdded(
            makes_a_difference=False, at_start=(), at_end=(), bos_id=bos_id, error=_line(error)
        )
    at_start, at_end = _around(plain, special)
    return SpecialTokensAdded(
        makes_a_difference=plain != special,
        at_start=at_start,
        at_end=at_end,
        bos_id=bos_id,
        error=None,
    )


def chat_encoding(vocabulary: Vocabulary, added: SpecialTokensAdded) -> ChatEncoding | None:
    """Render a chat of one message and encode it both ways; None without a chat template."""
    tokenizer: Any = vocabulary.tokenizer
    if not getattr(tokenizer, "chat_template", None):
        return None
    try:
        text = str(tokenizer.apply_chat_template(_CHAT, tokenize=False, add_generation_prompt=True))
        plain, special = _encode(vocabulary, text, False), _encode(vocabulary, text, True)
    except Exception as error:  # a template may raise whatever it likes
        return ChatEncoding(
            rendered_start="",
            first_ids=(),
            first_ids_with_special=(),
            doubled=(),
            error=_line(error),
        )
    start = added.at_start
    is_doubled = bool(start) and special[: 2 * len(start)] == [*start, *start]
    return ChatEncoding(
        rendered_start=text[:40],
        first_ids=tuple(plain[:_FIRST_IDS]),
        first_ids_with_special=tuple(special[:_FIRST_IDS]),
        doubled=start if is_doubled else (),
        error=None,
    )


def renders_chats_itself(vocabulary: Vocabulary) -> bool:
    """Whether the tokenizer turns chats into ids in code of its own, without a template."""
    return isinstance(vocabulary.tokenizer, MistralTokenizer)


def _encode(vocabulary: Vocabulary, text: str, add_special_tokens: bool) -> list[int]:
    tokenizer: Any = vocabulary.tokenizer
    return list(tokenizer.encode(text, add_special_tokens=add_special_tokens))


def _around(plain: list[int], special: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What stands before and after ``plain`` in ``special``; nothing where it is not inside."""
    for start in range(len(special) - len(plain) + 1):
        if special[start : start + len(plain)] == plain:
            return tuple(special[:start]), tuple(special[start + len(plain) :])
    return (), ()


def _line(error: Exception) -> str:
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return words if len(words) <= _LONGEST_ERROR else f"{words[:_LONGEST_ERROR]}…"
