"""A vocabulary as a model folder: what an engine's front end reads, and no weights."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from detokbench.errors import DetokbenchError, usage_error
from detokbench.vocab.mistral import MistralTokenizer
from detokbench.vocab.registry import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary

# Left over from another vocabulary, one of these would be read beside the new ones, or before.
_TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja", "tekken.json", "tokenizer.model", "tokenizer.model.v1",
)  # fmt: skip
_MAX_POSITIONS = 131_072
_LLAMA3_ENDS = ("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>")


def check_export_place(folder: Path, force: bool) -> None:
    """Raises DetokbenchError, exit code 2, for a file, or a folder not empty without ``force``."""
    if folder.exists() and not folder.is_dir():
        raise usage_error(f"{folder} is a file; name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise usage_error(f"{folder} is not empty; --force replaces the tokenizer that is in it")


def export_vocabulary(
    vocabulary: Vocabulary, folder: Path, template: str | None, tiny_config: bool
) -> list[str]:
    """Write tokenizer files and, where asked, a small configuration.

    ``template`` is the chat template of a tokenizer that has none of its own.

    The vocabularies that are Mistral's own tokenizers get Mistral's file, which vLLM reads with
    ``--tokenizer-mode mistral``, beside the same vocabulary as a ``tokenizer.json``. Replaces the
    tokenizer that is in ``folder`` and leaves other files alone. Returns the names written.

    Raises DetokbenchError, exit code 5, where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _TOKENIZER_FILES:
            (folder / name).unlink(missing_ok=True)
        _write_tokenizer(vocabulary, folder, template)
        if tiny_config:
            _write_json(folder / "config.json", tiny_llama(vocabulary))
            _write_json(folder / "generation_config.json", _generation(vocabulary))
    except OSError as error:
        why = error.strerror or str(error)
        raise DetokbenchError(f"cannot write a model folder to {folder}: {why}") from error
    configs = ("config.json", "generation_config.json") if tiny_config else ()
    return [name for name in (*_TOKENIZER_FILES, *configs) if (folder / name).exists()]


def tiny_llama(vocabulary: Vocabulary) -> dict[str, Any]:
    """``config.json`` of a Llama of two narrow layers, for long prompts and this vocabulary."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": _rows_needed(vocabulary),
        "bos_token_id": _id_of(vocabulary, "bos"),
        "eos_token_id": _id_of(vocabulary, "eos"),
        "max_position_embeddings": _MAX_POSITIONS,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
        # Without it some releases warn of a wrong Mistral pattern, whatever the tokenizer.
        "transformers_version": version("transformers"),
    }


def _write_tokenizer(vocabulary: Vocabulary, folder: Path, template: str | None) -> None:
    if isinstance(vocabulary.tokenizer, MistralTokenizer):
        own = vocabulary.tokenizer.file
        if own is not None:  # models carry a Tekken file without its date in the name
            is_tekken = vocabulary.tokenizer.is_tekken
            shutil.copyfile(own, folder / ("tekken.json" if is_tekken else own.name))
        vocabulary = load_vocabulary(f"{vocabulary.name}-fast")
    tokenizer: Any = vocabulary.tokenizer
    tokenizer.save_pretrained(folder)
    _name_class_for_all(folder / "tokenizer_config.json")
    if template is not None and not tokenizer.chat_template:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def _name_class_for_all(path: Path) -> None:
    """transformers 5 writes a class name that 4 does not know; it reads the older one as well."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    if settings.get("tokenizer_class") == "TokenizersBackend":
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        _write_json(path, settings)


def _rows_needed(vocabulary: Vocabulary) -> int:
    """Rows of the embedding: ids may lie above the number of tokens."""
    ids = vocabulary.tokenizer.get_vocab().values()
    return max(vocabulary.size, max(ids, default=-1) + 1)


def _id_of(vocabulary: Vocabulary, which: str) -> int | None:
    """The id of the tokenizer's ``bos`` or ``eos`` token, where it names one."""
    if isinstance(vocabulary.tokenizer, MistralTokenizer):
        found = getattr(vocabulary.tokenizer.inner, f"{which}_id", None)
    else:
        found = getattr(vocabulary.tokenizer, f"{which}_token_id", None)
    return found if isinstance(found, int) else None


def _generation(vocabulary: Vocabulary) -> dict[str, Any]:
    """Llama-3's instruct models end at several tokens, others at the one of the tokenizer."""
    known = vocabulary.tokenizer.get_vocab()
    ends = [known[token] for token in _LLAMA3_ENDS if token in known]
    return {
        "bos_token_id": _id_of(vocabulary, "bos"),
        "eos_token_id": ends or _id_of(vocabulary, "eos"),
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.unlink(missing_ok=True)  # a link into a hub's cache must not be written through
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
