"""The bytes behind each id, for the families whose decode is a plain concatenation of bytes.

Byte-level BPE, SentencePiece with byte fallback, and Tekken are; WordPiece and the like are not,
since there the text of a token depends on its neighbours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detokbench.vocab.byte_level import piece_to_bytes
from detokbench.vocab.mistral import MistralTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from detokbench.vocab.vocabulary import Vocabulary

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Characters that split, scripts without spaces, runs of spaces: where a wrong table shows.
_SAMPLE = "Hello, wörld!\n\n    x = [1, 2.50]\tGrüße 你好，世界 🤗🌶️ 𠮷 မြန်မာ ไทย שָׁלוֹם  end"


class UnsupportedFamilyError(Exception):
    """Why no table of bytes can stand for this vocabulary's decode."""


@dataclass(frozen=True, eq=False)
class IdBytes:
    """The bytes behind each id.

    ``pieces[i]`` is None where the vocabulary has no id ``i``. ``special_ids`` are left out of
    the text when special tokens are skipped. ``strips_leading_space`` says that decode drops one
    space at the very start of a text, as SentencePiece does; ``unstripped_ids`` keep theirs, since
    it is no mark of a word.
    """

    pieces: list[bytes | None]
    special_ids: frozenset[int]
    strips_leading_space: bool
    family: str
    unstripped_ids: frozenset[int] = frozenset()

    def join(self, ids: list[int]) -> bytes:
        """The bytes of ``ids`` with special tokens skipped, from the start of a text."""
        shown = [i for i in ids if i not in self.special_ids and self.pieces[i]]
        joined = b"".join(self.pieces[i] or b"" for i in shown)
        return joined[self.leading_space(shown) :]

    def leading_space(self, shown_ids: Sequence[int]) -> int:
        """Bytes of space that decode drops in front of a text of these ids: 1 or 0.

        ``shown_ids`` begin with the first id that puts anything into the text.
        """
        if not self.strips_leading_space or not shown_ids or shown_ids[0] in self.unstripped_ids:
            return 0
        return int((self.pieces[shown_ids[0]] or b"").startswith(b" "))


def id_bytes(vocabulary: Vocabulary) -> IdBytes:
    """Build the table and check it against ``decode`` on sample text.

    Raises UnsupportedFamilyError, with the reason, where the family does not fit or the table
    and ``decode`` disagree.
    """
    if vocabulary.rust is not None:
        table = _from_rust(vocabulary.rust)
    elif isinstance(vocabulary.tokenizer, MistralTokenizer):
        table = _from_mistral(vocabulary.tokenizer)
    else:
        kind = type(vocabulary.tokenizer).__name__
        raise UnsupportedFamilyError(f"{kind} is a Python tokenizer with a decode of its own")
    _check(table, vocabulary)
    return table


def _from_rust(rust: Tokenizer) -> IdBytes:
    family, piece_bytes, strips = _rust_family(rust)
    vocab = rust.get_vocab(with_added_tokens=True)
    pieces: list[bytes | None] = [None] * (max(vocab.values(), default=-1) + 1)
    for piece, token_id in vocab.items():
        pieces[token_id] = piece_bytes(piece)
    added = rust.get_added_tokens_decoder()
    special_ids = frozenset(i for i, token in added.items() if token.special)
    return IdBytes(pieces, special_ids, strips, family)


def _rust_family(rust: Tokenizer) -> tuple[str, Callable[[str], bytes], bool]:
    """The family that the decoder chain of a ``tokenizer.json`` names."""
    if rust.decoder is None:
        raise UnsupportedFamilyError("the tokenizer has no decoder, so decode puts spaces between")
    # The state of a decoder is its part of tokenizer.json; the whole file would be megabytes.
    decoder: dict[str, Any] = json.loads(rust.decoder.__getstate__())
    chain = decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]
    kinds = [link["type"] for link in chain]
    if kinds == ["ByteLevel"]:
        return "byte-level BPE", piece_to_bytes, False
    if "ByteFallback" in kinds and set(kinds) <= {"Replace", "ByteFallback", "Fuse", "Strip"}:
        if _spelt_in_byte_alphabet(rust):
            raise UnsupportedFamilyError(
                "the pieces are spelt byte-level but the decoder is SentencePiece's, "
                "so decode itself writes 'Ġ' for a space"
            )
        return "byte fallback", _piece_with_byte_fallback(chain), _strips_space(chain)
    raise UnsupportedFamilyError(
        f"its decoder is {' + '.join(kinds)}, where text depends on context"
    )


def _spelt_in_byte_alphabet(rust: Tokenizer) -> bool:
    return rust.token_to_id("Ġ") is not None and rust.token_to_id("▁") is None


def _piece_with_byte_fallback(chain: list[dict[str, Any]]) -> Callable[[str], bytes]:
    replaced = [
        (link["pattern"]["String"], link["content"])
        for link in chain
        if link["type"] == "Replace" and "String" in link["pattern"]
    ]

    def piece_bytes(piece: str) -> bytes:
        byte = _BYTE_PIECE.fullmatch(piece)
        if byte:
            return bytes([int(byte[1], 16)])
        for old, new in replaced:
            piece = piece.replace(old, new)
        return piece.encode()

    return piece_bytes


def _strips_space(chain: list[dict[str, Any]]) -> bool:
    strips = [link for link in chain if link["type"] == "Strip"]
    if any(link["content"] != " " or link["start"] != 1 or link["stop"] for link in strips):
        raise UnsupportedFamilyError("its decoder strips more than one leading space")
    return bool(strips)


def _from_mistral(tokenizer: MistralTokenizer) -> IdBytes:
    special_ids = frozenset(tokenizer.all_special_ids)
    inner = tokenizer.inner
    if tokenizer.is_tekken:
        from mistral_common.tokens.tokenizers.tekken import SpecialTokenPolicy

        keep = SpecialTokenPolicy.KEEP
        tekken = [inner.id_to_byte_piece(i, keep) for i in range(len(tokenizer))]
        return IdBytes(tekken, special_ids, False, "Tekken")
    piece_bytes = _piece_with_byte_fallback(
        [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}]
    )
    pieces: list[bytes | None] = [piece_bytes(inner.id_to_piece(i)) for i in range(len(tokenizer))]
    unknown = inner._model.unk_id()  # SentencePiece writes it as " ⁇ ", not as its piece
    pieces[unknown] = inner._model.decode([unknown]).encode()
    # Only the mark of a word is dropped at the start: neither " ⁇ " nor a space given as a byte.
    unstripped = frozenset({unknown, *(i for i, piece in enumerate(pieces) if _is_byte(inner, i))})
    return IdBytes(pieces, special_ids, True, "byte fallback", unstripped)


def _is_byte(inner: Any, token_id: int) -> bool:
    return _BYTE_PIECE.fullmatch(inner.id_to_piece(token_id)) is not None


def _check(table: IdBytes, vocabulary: Vocabulary) -> None:
    """Compare the table with decode: on sample text, and on ids spread over the vocabulary."""
    ids = vocabulary.encode(_SAMPLE)
    anchor = ids[:1]
    step = max(1, len(table.pieces) // 256)
    spread = [
        [*anchor, i]
        for i in range(0, len(table.pieces), step)
        if table.pieces[i] is not None and is_whole_text(table.pieces[i])
    ]
    for sample in [ids, *spread]:
        expected = vocabulary.raw_decode(sample)
        got = table.join(sample).decode("utf-8", "replace")
        if got != expected:
            raise UnsupportedFamilyError(
                f"the table gives {got[:40]!r} where decode gives {expected[:40]!r}"
            )


def is_whole_text(piece: bytes | None) -> bool:
    """Whether these bytes are text on their own, so that no character is left open."""
    try:
        (piece or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
