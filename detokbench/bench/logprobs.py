"""What log-probabilities cost in text: the engines decode each alternative by itself.

vLLM 0.33 turns the sampled id and its n alternatives into text one by one at every position
(``convert_ids_list_to_tokens``): n + 1 decodes a token, beside the stream's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns

from detokbench.bench.subjects import Timing
from detokbench.vocab.vocabulary import Vocabulary


class LogprobText:
    """The text of every alternative at a position; a unit is one token of the stream."""

    def __init__(self, vocabulary: Vocabulary, ids: Sequence[int], alternatives: int) -> None:
        """``ids`` are the stream; neighbours in it stand for the alternatives of a position."""
        self._decode = vocabulary.cached_tokenizer.decode
        width = alternatives + 1
        self._positions = [ids[i : i + width] for i in range(len(ids) - width)]
        self._position = 0
        self.limit = len(self._positions)

    def run(self, n: int) -> Timing:
        if self._position + n > len(self._positions):
            self._position = 0
        taken = self._positions[self._position : self._position + n]
        self._position += n
        decode = self._decode
        start = perf_counter_ns()
        for ids in taken:
            _ = [decode([token_id]) for token_id in ids]
        return Timing(perf_counter_ns() - start, n)
