"""The cache that vLLM puts around a transformers tokenizer.

transformers works out ``all_special_ids``, ``len`` and the like anew at each access, and the
slow path touches them for every token. vLLM answers them from a subclass made on the spot
(vllm/tokenizers/hf.py, ``get_cached_tokenizer``); without it the slow path is overstated.
"""

from __future__ import annotations

import copy
from typing import Any


def with_cached_properties(tokenizer: Any) -> Any:
    """A shallow copy whose special tokens, vocabulary, length and ``is_fast`` are answered once.

    ``get_added_vocab`` is left alone, as vLLM leaves it.
    """
    special_ids = list(tokenizer.all_special_ids)
    special_tokens = list(tokenizer.all_special_tokens)
    vocab = tokenizer.get_vocab()
    size = len(tokenizer)
    is_fast = getattr(tokenizer, "is_fast", True)
    answers = {
        "all_special_ids": property(lambda _: special_ids),
        "all_special_tokens": property(lambda _: special_tokens),
        "is_fast": property(lambda _: is_fast),
        "get_vocab": lambda _: vocab,
        "__len__": lambda _: size,
    }
    cached = copy.copy(tokenizer)
    cached.__class__ = type(f"Cached{type(tokenizer).__name__}", (type(tokenizer),), answers)
    return cached
