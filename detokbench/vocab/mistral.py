"""Mistral's tokenizers from the package ``mistral-common``: Tekken and SentencePiece (v1).

The plain names are the genuinely slow tokenizers, driven as vLLM's and SGLang's wrappers drive
them; the names with ``-fast`` are the same vocabularies as Rust tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detokbench.errors import DetokbenchError
from detokbench.vocab.byte_level import bytes_to_piece
from detokbench.vocab.conversion_cache import cached_file, file_digest
from detokbench.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TEKKEN_FILE = "tekken_240911.json"
_SPM_FILE = "tokenizer.model.v1"
_CONVERSION = 1  # raise it when a conversion below changes
# Special tokens that vLLM's wrapper shows even where special tokens are skipped.
_ALWAYS_SHOWN = frozenset({"[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"})


class MistralTokenizer:
    """Mistral's own tokenizer behind the calls that detokenisation makes.

    Pieces and their joining follow vLLM's wrapper (vllm/tokenizers/mistral.py, 0.33): a Tekken
    piece is text, or bytes as soon as one piece of a call is not whole text (vllm PR #9625).
    ``decode`` follows transformers' wrapper, which SGLang holds, but for SentencePiece with
    special tokens kept: there that wrapper joins raw pieces with their ``▁``, this one text.
    """

    is_fast = False

    def __init__(self, inner: Any, file: Path | None = None) -> None:
        from mistral_common.tokens.tokenizers.tekken import SpecialTokenPolicy, Tekkenizer

        self.inner = inner
        self.file = file
        self.is_tekken = isinstance(inner, Tekkenizer)
        self._keep, self._ignore = SpecialTokenPolicy.KEEP, SpecialTokenPolicy.IGNORE
        self._size = int(inner.n_words)
        special_ids = [i for i in range(self._size) if inner.is_special(i)]
        self._special_id_set = frozenset(special_ids)
        self._special_tokens = [inner.id_to_piece(i) for i in special_ids]
        self._hidden_tokens = frozenset(self._special_tokens) - _ALWAYS_SHOWN
        self._hidden_ids = frozenset(
            i
            for i, token in zip(special_ids, self._special_tokens, strict=True)
            if token in self._hidden_tokens
        )

    @property
    def all_special_ids(self) -> list[int]:
        return sorted(self._special_id_set)  # anew at each access, as transformers' wrapper does

    @property
    def all_special_tokens(self) -> list[str]:
        return self._special_tokens

    def __len__(self) -> int:
        return self._size

    def get_vocab(self) -> dict[str, int]:
        """Piece to id. Lossy for Tekken: many pieces are cut characters with the same text."""
        return {self.inner.id_to_piece(i): i for i in reversed(range(self._size))}

    def get_added_vocab(self) -> dict[str, int]:
        return {}

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return list(self.inner.encode(text, bos=add_special_tokens, eos=False))

    def decode(
        self, token_ids: Sequence[int], skip_special_tokens: bool = False, **_: bool
    ) -> str:
        if skip_special_tokens or not self.is_tekken:
            return self._decode_runs(token_ids, skip_special_tokens)
        return str(self.inner.decode(token_ids, self._keep))

    def _decode_runs(self, token_ids: Sequence[int], skip_special_tokens: bool) -> str:
        special = self._special_id_set
        if skip_special_tokens or special.isdisjoint(token_ids):
            return str(self.inner.decode(token_ids, self._ignore))
        runs = groupby(token_ids, special.__contains__)
        return "".join(
            "".join(map(self.inner.id_to_piece, run))
            if are_special
            else self.inner.decode(list(run), self._ignore)
            for are_special, run in runs
        )

    def batch_decode(self, sequences: list[list[int]], **flags: bool) -> list[str]:
        return [self.decode(ids, **flags) for ids in sequences]

    def convert_ids_to_tokens(
        self, ids: list[int], skip_special_tokens: bool = False
    ) -> list[str | bytes]:
        id_to_piece = self.inner.id_to_piece
        if not skip_special_tokens:
            return [id_to_piece(i) for i in ids]
        kept = [i for i in ids if i not in self._hidden_ids]
        tokens: list[str | bytes] = [id_to_piece(i) for i in kept]
        if self.is_tekken and any("\ufffd" in token for token in tokens):
            return [
                token if i in self._special_id_set else self.inner.id_to_byte_piece(i, self._keep)
                for i, token in zip(kept, tokens, strict=True)
            ]
        return tokens

    def convert_tokens_to_string(self, tokens: list[str | bytes]) -> str:
        if not self.is_tekken:
            return str(self.inner.decode(tokens, self._ignore))
        kept = [token for token in tokens if token not in self._hidden_tokens]
        if any(isinstance(token, bytes) for token in kept):
            return str(self.inner.decode([self._tekken_id(t) for t in kept], self._keep))
        return "".join(kept)  # type: ignore[arg-type]

    def _tekken_id(self, token: str | bytes) -> int:
        piece = token if isinstance(token, bytes) else token.encode()
        rank = self.inner._tekken_token2id_nospecial.get(piece)
        if rank is not None:
            return int(self.inner.num_special_tokens + rank)
        # A special token, or the "" of an id out of range, which vLLM writes as <unk>.
        special = self.inner._special_tokens_reverse_vocab
        return int(special.get(piece.decode(), self.inner.unk_id))


def load_mistral(name: str) -> Vocabulary:
    """``tekken``, ``tekken-fast``, ``mistral-spm`` or ``mistral-spm-fast``."""
    source = f"mistral-common {version('mistral-common')}"
    family, _, form = name.partition("-fast")
    load, convert = _FAMILIES[family]
    if name == family and not form:
        tokenizer = MistralTokenizer(load(), _data_file(_FILES[family]))
        return Vocabulary(name, tokenizer, None, source)
    return _load_fast(name, source, _data_file(_FILES[family]), lambda: convert(load()))


def transformers_tokenizer(tokenizer: MistralTokenizer) -> Any:
    """The same file behind transformers' wrapper, which the engines hold or wrap once more.

    Raises DetokbenchError where the installed transformers has none, or cannot load the file.
    """
    try:
        from mistral_common.protocol.instruct.validator import ValidationMode
        from transformers.tokenization_mistral_common import MistralCommonBackend
    except ImportError as error:
        raise DetokbenchError(
            f"transformers {version('transformers')} with mistral-common "
            f"{version('mistral-common')} has no MistralCommonBackend: {error}"
        ) from error
    try:
        return MistralCommonBackend(tokenizer_path=str(tokenizer.file), mode=ValidationMode.test)
    except Exception as error:
        why = " ".join(str(error).split())
        raise DetokbenchError(
            f"transformers' MistralCommonBackend cannot load {tokenizer.file}: {why}"
        ) from error


def _load_fast(
    name: str, source: str, model_path: Path, convert: Callable[[], Tokenizer]
) -> Vocabulary:
    from transformers import PreTrainedTokenizerFast

    from detokbench.vocab.rust import rust_tokenizer_of

    path = cached_file(
        f"{name}-{_CONVERSION}-{file_digest(model_path)[:16]}.json",
        lambda: convert().to_str().encode(),
    )
    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_file=str(path),
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
    return Vocabulary(name, tokenizer, rust_tokenizer_of(tokenizer), source)


def _data_file(name: str) -> Path:
    import mistral_common

    path = Path(mistral_common.__file__).parent / "data" / name
    if not path.is_file():
        raise DetokbenchError(
            f"mistral-common {version('mistral-common')} does not ship {name}; "
            "install a release that does (1.8 and newer were tried)"
        )
    return path


def _load_tekken() -> Any:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(_data_file(_TEKKEN_FILE))


def _load_spm() -> Any:
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

    return SentencePieceTokenizer(_data_file(_SPM_FILE))


def _convert_tekken(tekken: Any) -> Tokenizer:
    """Byte-level BPE with the special tokens first, ids as Tekken has them."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    ranks: dict[bytes, int] = tekken._tekken_token2id_nospecial
    specials = [tekken.id_to_piece(i) for i in range(tekken.num_special_tokens)]
    vocab = {token: i for i, token in enumerate(specials)}
    vocab.update({bytes_to_piece(b): len(specials) + rank for b, rank in ranks.items()})
    merges = [(bytes_to_piece(a), bytes_to_piece(b)) for a, b in _byte_merges(ranks)]
    tokenizer = Tokenizer(models.BPE(vocab, merges, fuse_unk=False, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(tekken._model._pat_str), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in specials])
    return _with_size(tokenizer, int(tekken.n_words))


def _byte_merges(ranks: dict[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """The merges that tiktoken's ranks imply: every split of a piece into two pieces, by rank."""
    for piece, _ in sorted(ranks.items(), key=lambda item: item[1]):
        splits = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        known = [split for split in splits if split[0] in ranks and split[1] in ranks]
        yield from sorted(known, key=lambda split: (ranks[split[0]], ranks[split[1]]))


def _convert_spm(spm: Any) -> Tokenizer:
    """SentencePiece BPE with byte fallback, decoder chain as Llama-2's and Mistral's."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

    processor = spm._model
    pieces = [processor.id_to_piece(i) for i in range(spm.n_words)]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    scores = {piece: processor.get_score(i) for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(
        models.BPE(
            vocab, _scored_merges(scores), unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    control = [pieces[i] for i in range(spm.n_words) if spm.is_special(i)]
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in control])
    return _with_size(tokenizer, int(spm.n_words))


def _scored_merges(scores: dict[str, float]) -> list[tuple[str, str]]:
    """SentencePiece keeps scores, not merges: every split, best score first."""
    merges = [
        (piece[:cut], piece[cut:], score)
        for piece, score in scores.items()
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    merges.sort(key=lambda merge: (-merge[2], len(merge[0]), len(merge[1])))
    return [(left, right) for left, right, _ in merges]


def _with_size(tokenizer: Tokenizer, expected: int) -> Tokenizer:
    if tokenizer.get_vocab_size() != expected:
        raise DetokbenchError(
            f"the conversion has {tokenizer.get_vocab_size():,} ids, Mistral's own tokenizer "
            f"{expected:,}"
        )
    return tokenizer


_FILES = {"tekken": _TEKKEN_FILE, "mistral-spm": _SPM_FILE}
_FAMILIES: dict[str, tuple[Callable[[], Any], Callable[[Any], Tokenizer]]] = {
    "tekken": (_load_tekken, _convert_tekken),
    "mistral-spm": (_load_spm, _convert_spm),
}
