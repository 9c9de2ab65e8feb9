"""Llama-3: the BPE ranks that the package ``llama-models`` ships, as a Rust tokenizer.

128,000 ranks and Meta's 256 special tokens under their own names and ids: 128,256 ids. The
begin and end tokens are those of the instruct models.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detokbench.errors import DetokbenchError
from detokbench.vocab.conversion_cache import cached_file, file_digest
from detokbench.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_CONVERSION = 1  # raise it when the conversion below changes


def load_llama3(name: str) -> Vocabulary:
    """The vocabulary ``llama-3``; the conversion takes a few seconds once and is then cached."""
    from transformers import PreTrainedTokenizerFast

    from detokbench.vocab.rust import rust_tokenizer_of

    model_path = _ranks_path()
    path = cached_file(
        f"llama-3-{_CONVERSION}-{file_digest(model_path)[:16]}.json",
        lambda: _convert(model_path).to_str().encode(),
    )
    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_file=str(path),
        bos_token="<|begin_of_text|>",
        eos_token="<|eot_id|>",
        clean_up_tokenization_spaces=False,
    )
    source = f"llama-models {version('llama-models')}"
    return Vocabulary(name, tokenizer, rust_tokenizer_of(tokenizer), source)


def _ranks_path() -> Path:
    from importlib.util import find_spec

    spec = find_spec("llama_models")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "llama3" / "tokenizer.model"
        if path.is_file():
            return path
    raise DetokbenchError("the package llama-models has no llama3/tokenizer.model; reinstall it")


def _convert(ranks_path: Path) -> Tokenizer:
    from llama_models.llama3.tokenizer import Tokenizer as MetaTokenizer
    from transformers.convert_slow_tokenizer import TikTokenConverter

    meta = MetaTokenizer(ranks_path)
    special_by_id = sorted(meta.special_tokens, key=meta.special_tokens.__getitem__)
    converter = TikTokenConverter(
        vocab_file=str(ranks_path), pattern=meta.pat_str, extra_special_tokens=special_by_id
    )
    converted: Tokenizer = converter.converted()
    if converted.get_vocab_size() != meta.n_words:
        raise DetokbenchError(
            f"the Llama-3 conversion has {converted.get_vocab_size():,} ids, Meta's own "
            f"tokenizer {meta.n_words:,}; the installed transformers cannot convert it"
        )
    return converted
