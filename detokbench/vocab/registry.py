"""Which vocabularies there are by name, and how any name is resolved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from detokbench.errors import usage_error
from detokbench.grammar import no_such
from detokbench.vocab.vocabulary import Vocabulary

DEFAULT_VOCABULARY = "llama-3"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class KnownVocabulary:
    """One line of ``detokbench vocab list``."""

    name: str
    ids: int
    tokenizer: str
    family: str
    package: str


def known_vocabularies() -> list[KnownVocabulary]:
    """The vocabularies that come with the package's own dependencies."""
    llama, mistral = "llama-models", "mistral-common"
    return [
        KnownVocabulary("llama-3", 128_256, "Rust", "byte-level BPE", llama),
        KnownVocabulary("tekken", 131_072, "Python", "byte-level BPE (tiktoken)", mistral),
        KnownVocabulary("tekken-fast", 131_072, "Rust", "byte-level BPE", mistral),
        KnownVocabulary("mistral-spm", 32_000, "Python", "SentencePiece, byte fallback", mistral),
        KnownVocabulary("mistral-spm-fast", 32_000, "Rust", "BPE, byte fallback", mistral),
    ]


def check_vocabulary_name(name: str) -> None:
    """Refuse a name that cannot be a vocabulary (exit code 2), without loading anything."""
    known = [vocabulary.name for vocabulary in known_vocabularies()]
    if name in known or (name and Path(name).exists()) or _HUB_ID.fullmatch(name):
        return
    raise usage_error(no_such("vocabulary", name, known))


def load_vocabulary(name: str, trust_remote_code: bool = False) -> Vocabulary:
    """Load a vocabulary by name, by path, or by hub id (``owner/model``).

    Raises DetokbenchError: exit code 2 for a name that is none of these, 5 for a vocabulary that
    cannot be loaded.
    """
    check_vocabulary_name(name)
    if name == "llama-3":
        from detokbench.vocab.llama3 import load_llama3

        return load_llama3(name)
    if name in {known.name for known in known_vocabularies()}:
        from detokbench.vocab.mistral import load_mistral

        return load_mistral(name)

    from detokbench.vocab.from_files import load_file, load_pretrained

    if Path(name).is_file():
        return load_file(Path(name))
    return load_pretrained(name, trust_remote_code)
