"""What each stop string means for the engines' stop checks with this vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from detokbench.model.hold_back import vllm_hold_back_chars
from detokbench.stops.tail_window import TailWindow
from detokbench.vocab.audit_ids import IdSet, id_set
from detokbench.vocab.id_bytes import IdBytes, UnsupportedFamilyError
from detokbench.vocab.mistral import MistralTokenizer
from detokbench.vocab.special_texts import special_texts
from detokbench.vocab.spelling import (
    Edges,
    Pieces,
    Spellings,
    can_appear,
    edges,
    ordinary_pieces,
    spellings,
)
from detokbench.vocab.vocabulary import Vocabulary

Match = Literal["yes", "if spelt", "by path", "no", "unknown"]
"""Whether it can match where special tokens are skipped: ``if spelt``, only where ordinary ids
write a special token's text; ``by path``, since a cut character is U+FFFD on some paths."""


class Spelling(msgspec.Struct, frozen=True, kw_only=True):
    """Ids that write a stop string: how many, and one such list."""

    tokens: int
    ids: tuple[int, ...]


class StopFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One stop string on its own. What needs a table of bytes is None without one."""

    text: str
    hold_back_chars: int
    """Characters that vLLM keeps back as long as the request runs."""
    canonical: Spelling
    """As ``encode`` splits it, special tokens included; its length is SGLang's."""
    space_in_front: bool | None
    """Whether ``encode`` put a space in front, which counts in that length."""
    shortest: Spelling | None
    longest: Spelling | None
    """Of ids that are not special, whose bytes are the stop string's and no more."""
    window_tokens: int
    """The tail that SGLang decodes at one id a step."""
    longest_fits: bool | None
    fused: IdSet | None
    """Ids that hold all of it and more."""
    fused_before: IdSet | None
    """Ids that end with a beginning of it, after other bytes."""
    fused_after: IdSet | None
    """Ids that begin with an end of it, before other bytes."""
    special: dict[str, int]
    """Special tokens whose text it is, or holds."""
    match: Match
    why: str


class StopList(msgspec.Struct, frozen=True, kw_only=True):
    """The stop strings, and what they are as those of one request."""

    stops: list[StopFacts]
    hold_back_chars: int
    window_tokens: int


def stop_list(vocabulary: Vocabulary, strings: Sequence[str]) -> StopList:
    """Each of ``strings``, none of them empty, then all of them together."""
    try:
        table = vocabulary.id_bytes
    except UnsupportedFamilyError:
        table = None
    pieces = None if table is None else ordinary_pieces(table)
    special = special_texts(vocabulary)
    return StopList(
        stops=[_facts(vocabulary, table, pieces, special, text) for text in strings],
        hold_back_chars=vllm_hold_back_chars(strings),
        window_tokens=TailWindow.for_stops(strings, [], vocabulary.encode).base_tokens,
    )


class _Spelt(msgspec.Struct, frozen=True, kw_only=True):
    """What the table of bytes tells of a stop string."""

    spellings: Spellings
    edges: Edges
    appears: bool


def _facts(
    vocabulary: Vocabulary,
    table: IdBytes | None,
    pieces: Pieces | None,
    special: Mapping[str, int],
    text: str,
) -> StopFacts:
    canonical = vocabulary.encode(text)
    window = TailWindow.for_stops([text], [], vocabulary.encode).base_tokens
    held = {token: i for token, i in special.items() if token and token in text}
    spelt = None if table is None or pieces is None else _spelt(table, pieces, text.encode())
    match, why = _match(vocabulary, text, held, spelt.appears if spelt else None)
    longest = _spelling(spelt.spellings.most) if spelt else None
    return StopFacts(
        text=text,
        hold_back_chars=vllm_hold_back_chars([text]),
        canonical=Spelling(tokens=len(canonical), ids=tuple(canonical)),
        space_in_front=None if table is None else _has_space_in_front(table, text, canonical),
        shortest=_spelling(spelt.spellings.fewest) if spelt else None,
        longest=longest,
        window_tokens=window,
        longest_fits=None if longest is None else longest.tokens <= window,
        fused=id_set(spelt.edges.containing) if spelt else None,
        fused_before=id_set(spelt.edges.before) if spelt else None,
        fused_after=id_set(spelt.edges.after) if spelt else None,
        special=held,
        match=match,
        why=why,
    )


def _spelt(table: IdBytes, pieces: Pieces, text: bytes) -> _Spelt:
    ordinary = ((p, i) for i, p in enumerate(table.pieces) if p and i not in table.special_ids)
    found = edges(text, ordinary)
    return _Spelt(
        spellings=spellings(text, pieces), edges=found, appears=can_appear(text, pieces, found)
    )


def _spelling(ids: list[int] | None) -> Spelling | None:
    return None if ids is None else Spelling(tokens=len(ids), ids=tuple(ids))


def _match(
    vocabulary: Vocabulary, text: str, held: Mapping[str, int], appears: bool | None
) -> tuple[Match, str]:
    """Whether the stop string can come out while special tokens are skipped, and why not."""
    if held:
        return _match_of_special(vocabulary, list(held.values()), appears)
    if appears is False:
        return "no", "no ids write these bytes"
    if "\ufffd" in text:
        return "by path", (
            "SGLang's tail shows a cut character as U+FFFD and stops there; "
            "vLLM holds even a genuine one until text follows"
        )
    return ("yes", "") if appears else _match_as_encoded(vocabulary, text)


def _match_of_special(
    vocabulary: Vocabulary, ids: Sequence[int], appears: bool | None
) -> tuple[Match, str]:
    """SGLang's scheduler decodes its tail without the flag (0.5.23, ``Req.tail_str``)."""
    shown = [i for i in ids if _is_always_shown(vocabulary, i)]
    if shown:
        return "yes", f"id {shown[0]} is shown even while special tokens are skipped"
    hidden = ", ".join(map(str, ids))
    why = f"id {hidden} writes nothing while special tokens are skipped; SGLang's tail keeps it"
    if appears is None:
        return "unknown", f"{why}; whether other ids spell it is not known without a table of bytes"
    return ("if spelt" if appears else "no"), why


def _match_as_encoded(vocabulary: Vocabulary, text: str) -> tuple[Match, str]:
    """Without a table of bytes, only the spelling that ``encode`` gives can be tried."""
    back = vocabulary.decode(vocabulary.encode(text))
    if back.strip() == text.strip():
        return "yes", "as encode spells it; other spellings are not known without a table of bytes"
    return "unknown", f"encoded and decoded it is {back!r}"


def _is_always_shown(vocabulary: Vocabulary, special_id: int) -> bool:
    """Mistral's wrapper shows a few, tool calls among them, whatever the flag."""
    tokenizer = vocabulary.tokenizer
    if not isinstance(tokenizer, MistralTokenizer):
        return False
    return bool(tokenizer.convert_ids_to_tokens([special_id], skip_special_tokens=True))


def _has_space_in_front(table: IdBytes, text: str, canonical: Sequence[int]) -> bool:
    first = table.pieces[canonical[0]] if canonical else None
    return not text.startswith(" ") and (first or b"").startswith(b" ")
