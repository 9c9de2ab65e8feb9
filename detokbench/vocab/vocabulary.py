"""What a vocabulary is to the rest of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.decoders import DecodeStream

    from detokbench.vocab.id_bytes import IdBytes


class TokenizerLike(Protocol):
    """The part of a transformers tokenizer that detokenisation touches."""

    @property
    def is_fast(self) -> bool: ...
    @property
    def all_special_ids(self) -> list[int]: ...
    @property
    def all_special_tokens(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def get_vocab(self) -> dict[str, int]: ...
    def get_added_vocab(self) -> dict[str, int]: ...
    def decode(self, token_ids: Sequence[int], **flags: bool) -> str: ...
    def batch_decode(self, sequences: list[list[int]], **flags: bool) -> list[str]: ...
    def convert_ids_to_tokens(
        self, ids: list[int], skip_special_tokens: bool = False
    ) -> list[Any]: ...
    def convert_tokens_to_string(self, tokens: list[Any]) -> str: ...


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer as an engine would hold it, and where it came from.

    ``tokenizer`` is what Python code calls. ``rust`` is the ``tokenizers.Tokenizer`` inside it, or
    None where the tokenizer is Python: paths that need DecodeStream or ``decode_batch`` do not
    apply then.
    """

    name: str
    tokenizer: TokenizerLike
    rust: Tokenizer | None
    source: str

    @property
    def is_rust(self) -> bool:
        """Whether vLLM would choose its fast detokenizer: it asks for this, not ``is_fast``."""
        return self.rust is not None

    @cached_property
    def cached_tokenizer(self) -> TokenizerLike:
        """The tokenizer as vLLM holds it: behind its cache of properties, but for Mistral's."""
        from detokbench.vocab.mistral import MistralTokenizer
        from detokbench.vocab.property_cache import with_cached_properties

        if isinstance(self.tokenizer, MistralTokenizer):
            return self.tokenizer  # vLLM's wrapper for it keeps these properties itself
        cached: TokenizerLike = with_cached_properties(self.tokenizer)
        return cached

    @cached_property
    def id_bytes(self) -> IdBytes:
        """The bytes behind each id. Raises UnsupportedFamilyError where there is no such table."""
        from detokbench.vocab.id_bytes import id_bytes

        return id_bytes(self)

    @property
    def size(self) -> int:
        """Number of ids, special and added ones included."""
        return len(self.tokenizer)

    @property
    def facts(self) -> dict[str, str | int]:
        """What records say of it."""
        return {
            "name": self.name,
            "ids": self.size,
            "tokenizer": "Rust" if self.is_rust else "Python",
            "source": self.source,
        }

    def encode(self, text: str) -> list[int]:
        """The ids of ``text`` with no special tokens added."""
        if self.rust is not None:
            return list(self.rust.encode(text, add_special_tokens=False).ids)
        encode: Any = self.tokenizer.encode  # type: ignore[attr-defined]
        return list(encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """One decode of all ids at once, as the tokenizer gives it to its callers."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def raw_decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The same without transformers' clean-up of spaces: what streams are compared with."""
        if self.rust is None:
            return self.decode(ids, skip_special_tokens)
        return self.rust.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def decode_stream(self, ids: Sequence[int] | None, skip_special_tokens: bool) -> DecodeStream:
        """A DecodeStream primed with ``ids`` (native prefill, tokenizers 0.22 and newer)."""
        from tokenizers.decoders import DecodeStream

        return DecodeStream(ids=ids, skip_special_tokens=skip_special_tokens)
