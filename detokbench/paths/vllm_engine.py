"""``vllm`` and ``vllm-slow``: the incremental detokenizers of the vLLM installed beside us.

The classes are vLLM's own, unmodified (vllm/v1/engine/detokenizer.py). Fast or slow is chosen as
vLLM chooses: by the class of the tokenizer, not by ``is_fast``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from detokbench.paths.installed_engine import built_upon
from detokbench.paths.probe_engine import why_not_of
from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.vllm_names import NO_STOPS, engine_request, name_of, tokenizer_of
from detokbench.paths.vllm_stops import DetokenizerStops
from detokbench.stops.request import StopRequest, StopStream, StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class VllmPath:
    """The installed vLLM's IncrementalDetokenizer, fast or slow as vLLM itself chooses."""

    name = "vllm"
    whose = "vLLM, as installed"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "characters"
    is_engine = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = tokenizer_of(vocabulary)
        self._make = self._maker()
        self._rows: dict[int, Any] = {}
        self._next_row = count()

    @staticmethod
    def _maker() -> Any:
        return name_of("v1.engine.detokenizer", "IncrementalDetokenizer").from_new_request

    @classmethod
    def why_not(cls, vocabulary: Vocabulary) -> str | None:
        return why_not_of("vllm", cls, vocabulary)

    def _detokenizer(self, number: int, prompt: list[int], flags: Flags, stops: StopRequest) -> Any:
        request = engine_request(str(number), prompt, flags, stops)
        with built_upon("vllm", "IncrementalDetokenizer"):
            return self._make(self._tokenizer, request)

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        for row, prompt, row_flags in zip(
            rows, prompts, flags_or_default(prompts, flags), strict=True
        ):
            self._rows[row] = self._detokenizer(row, prompt, row_flags, NO_STOPS)
        return rows

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        deltas = []
        for row, ids in zip(rows, new_ids, strict=True):
            detokenizer = self._rows[row]
            detokenizer.update(ids, False)
            deltas.append(detokenizer.get_next_output_text(False, True))
        return deltas

    def end(self, row: int) -> str:
        text: str = self._rows.pop(row).get_next_output_text(True, True)
        return text

    def open_with_stops(self, prompt: list[int], flags: Flags, stops: StopRequest) -> StopStream:
        """A stream whose stops vLLM's own detokenizer looks for."""
        number = next(self._next_row)
        return DetokenizerStops(self._detokenizer(number, prompt, flags, stops), stops)


class VllmSlowPath(VllmPath):
    """The installed vLLM's SlowIncrementalDetokenizer on any tokenizer."""

    name = "vllm-slow"
    whose = "vLLM, as installed, made to take its slow path"

    @staticmethod
    def _maker() -> Any:
        return name_of("v1.engine.detokenizer", "SlowIncrementalDetokenizer")
