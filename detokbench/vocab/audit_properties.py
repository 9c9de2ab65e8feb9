"""What the properties cost that an engine touches for a token or a step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from operator import attrgetter, methodcaller
from statistics import median
from time import perf_counter
from typing import Any

import msgspec

from detokbench.vocab.vocabulary import Vocabulary

# Eight measurements of 40 ms stay well below half a second.
_BUDGET_S = 0.04
_BLOCK_S = 0.002
_FEWEST_BLOCKS = 3

_TOUCHES: dict[str, Callable[[Any], object]] = {
    "len": len,
    "get_added_vocab": methodcaller("get_added_vocab"),
    "all_special_ids": attrgetter("all_special_ids"),
    "is_fast": attrgetter("is_fast"),
}
# What vLLM's caching proxy leaves to the tokenizer.
_NOT_CACHED = frozenset({"get_added_vocab"})


class PropertyCost(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one access, the median of several blocks; measured."""

    name: str
    uncached_s: float
    """As transformers, or the tokenizer's own class, gives it."""
    cached_s: float | None
    """Behind vLLM's caching proxy; None where vLLM puts none around this tokenizer."""
    is_cached: bool
    """Whether that proxy answers it from a value worked out once."""


def property_costs(vocabulary: Vocabulary) -> list[PropertyCost]:
    """Time each property on the bare tokenizer and behind vLLM's proxy, below 0.5 s in all."""
    plain, cached = vocabulary.tokenizer, vocabulary.cached_tokenizer
    has_proxy = cached is not plain
    return [
        PropertyCost(
            name=name,
            uncached_s=_seconds(touch, plain),
            cached_s=_seconds(touch, cached) if has_proxy else None,
            is_cached=has_proxy and name not in _NOT_CACHED,
        )
        for name, touch in _TOUCHES.items()
    ]


def _seconds(touch: Callable[[Any], object], tokenizer: Any) -> float:
    start = perf_counter()
    once = max(_block(touch, tokenizer, 1), 1e-8)
    times = max(1, int(_BLOCK_S / once))
    blocks: list[float] = []
    while len(blocks) < _FEWEST_BLOCKS or perf_counter() - start < _BUDGET_S - _BLOCK_S:
        blocks.append(_block(touch, tokenizer, times) / times)
    return median(blocks)


def _block(touch: Callable[[Any], object], tokenizer: Any, times: int) -> float:
    start = perf_counter()
    for _ in repeat(None, times):
        touch(tokenizer)
    return perf_counter() - start
