"""Vocabularies by name: loading them, and the bytes behind each id."""

from detokbench.vocab.registry import known_vocabularies, load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary

__all__ = ["Vocabulary", "known_vocabularies", "load_vocabulary"]
