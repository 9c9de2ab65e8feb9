"""A vocabulary of the user's: a ``tokenizer.json``, a model folder, or a hub id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detokbench.errors import DetokbenchError
from detokbench.vocab.vocabulary import Vocabulary

_LONGEST = 160


def load_file(path: Path) -> Vocabulary:
    """A ``tokenizer.json``. Raises DetokbenchError (exit code 5) where it is not one."""
    from transformers import PreTrainedTokenizerFast

    from detokbench.vocab.rust import rust_tokenizer_of

    try:
        tokenizer: Any = PreTrainedTokenizerFast(
            tokenizer_file=str(path), clean_up_tokenization_spaces=False
        )
    except Exception as error:
        raise DetokbenchError(
            f"{path} is not a tokenizer.json that tokenizers can read: {_one_line(error)}"
        ) from error
    # Every model calls this file the same, so the folder's name says more.
    name = path.parent.name if path.name == "tokenizer.json" and path.parent.name else path.name
    return Vocabulary(name, tokenizer, rust_tokenizer_of(tokenizer), f"file {path.name}")


def load_pretrained(name: str, trust_remote_code: bool) -> Vocabulary:
    """A model folder or a hub id, through AutoTokenizer. Remote code only where it is allowed."""
    from transformers import AutoTokenizer

    from detokbench.vocab.rust import rust_tokenizer_of

    folder = Path(name)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(name, trust_remote_code=trust_remote_code)
    except Exception as error:
        raise DetokbenchError(_why_not(name, folder, error)) from error
    if folder.is_dir():
        return Vocabulary(folder.name, tokenizer, rust_tokenizer_of(tokenizer), "folder")
    return Vocabulary(name, tokenizer, rust_tokenizer_of(tokenizer), f"hub {name}")


def _why_not(name: str, folder: Path, error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return f"'{name}' needs code of its own; allow it with --trust-remote-code if you trust it"
    if folder.is_dir():
        return f"no tokenizer can be loaded from the folder {name}: {_one_line(error)}"
    return (
        f"no tokenizer can be had for '{name}': it is no file or folder here, and the hub did not "
        f"give it ({type(error).__name__}); name a local folder, or see 'detokbench vocab list'"
    )


def _one_line(error: Exception) -> str:
    words = " ".join(str(error).split())
    return words[:_LONGEST] + "…" if len(words) > _LONGEST else words or type(error).__name__
