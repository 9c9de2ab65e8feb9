"""The tokenizer calls that turn prompts into ids, as they can be timed.

``tokenizer(text)`` is the call of both engines (vLLM 0.33, renderers/base.py ``_tokenize_prompt``;
SGLang 0.5.23, managers/tokenizer_manager.py ``_tokenize_texts``). In transformers 5 it is the
crate's ``encode_batch`` of one text. ``Tokenizer.encode`` is the crate's own call for one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns
from typing import Any

from detokbench.bench.loops import time_calls
from detokbench.bench.subjects import Timing
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.prompt_texts import PromptText

CALL = "tokenizer(text)"
RUST_CALL = "Tokenizer.encode"
LIST_CALL = "tokenizer(list)"
RUST_LIST_CALL = "Tokenizer.encode_batch"
PYTHON_CALL = "tokenizer.encode"
LONG_CALL_IDS = 1 << 12
"""From here on a call takes many ms: one at a time is long enough against the clock."""
_MOST_CALLS = 1024


def calls_of_one(vocabulary: Vocabulary) -> dict[str, Callable[[str], Any]]:
    """The calls that encode one text, by name. A Python tokenizer has one."""
    tokenizer: Any = vocabulary.tokenizer
    if vocabulary.rust is None:
        return {PYTHON_CALL: tokenizer.encode}  # as SGLang does where a tokenizer is not fast
    return {CALL: tokenizer, RUST_CALL: vocabulary.rust.encode}


def calls_of_many(vocabulary: Vocabulary) -> dict[str, Callable[[list[str]], Any]]:
    """The calls that encode a list of texts, by name; none for a Python tokenizer."""
    tokenizer: Any = vocabulary.tokenizer
    if vocabulary.rust is None:
        return {}
    return {LIST_CALL: tokenizer, RUST_LIST_CALL: vocabulary.rust.encode_batch}


def as_engines_call(vocabulary: Vocabulary) -> Callable[..., dict[str, Any]]:
    """``tokenizer(text)`` and ``tokenizer(texts)``, whichever tokenizer it is."""
    tokenizer: Any = vocabulary.tokenizer
    if vocabulary.rust is not None:
        call_rust: Callable[..., dict[str, Any]] = tokenizer
        return call_rust

    def call(texts: str | list[str]) -> dict[str, Any]:
        if isinstance(texts, str):
            return {"input_ids": tokenizer.encode(texts)}
        return {"input_ids": [tokenizer.encode(text) for text in texts]}

    return call


class EncodeCalls:
    """Calls with a different text, or batch of texts, each; a unit is one prompt."""

    def __init__(
        self, call: Callable[[Any], Any], texts: Sequence[PromptText], batch: int | None
    ) -> None:
        """``batch`` None is one text a call, not a list of one."""
        self._call = call
        self._batch = batch or 1
        self._arguments = _endless(texts, batch)
        ids = max(text.ids for text in texts) * self._batch
        self.limit = 1 if ids >= LONG_CALL_IDS else _MOST_CALLS

    def run(self, n: int) -> Timing:
        arguments = [next(self._arguments) for _ in range(n)]
        return Timing(time_calls(self._call, arguments, {}), n * self._batch)


def _endless(texts: Sequence[PromptText], batch: int | None) -> Iterator[Any]:
    """Texts in turn, or batches of them, over and over."""
    position = 0
    while True:
        taken = [texts[(position + i) % len(texts)].text for i in range(batch or 1)]
        position += batch or 1
        yield taken if batch else taken[0]


def call_ns(call: Callable[[Any], Any], argument: Any) -> int:
    """Nanoseconds of one call."""
    start = perf_counter_ns()
    call(argument)
    return perf_counter_ns() - start
