"""What vLLM's two detokenizers share: the growing output text of a row and its deltas."""

from __future__ import annotations

from abc import ABC, abstractmethod


class VllmRow(ABC):
    """One request's ids and text (vllm/v1/engine/detokenizer.py, BaseIncrementalDetokenizer)."""

    def __init__(self) -> None:
        self.token_ids: list[int] = []
        self.output_text = ""
        self._sent = 0

    @abstractmethod
    def decode_next(self, token_id: int) -> str:
        """The text that ``token_id``, already appended to ``token_ids``, makes final."""

    def update(self, new_ids: list[int]) -> None:
        """Append ids one at a time, whatever their number, as vLLM does."""
        for token_id in new_ids:
            self.token_ids.append(token_id)
            self.output_text += self.decode_next(token_id)

    def next_delta(self) -> str:
        """The text since the last call."""
        length = len(self.output_text)
        sent = self._sent
        if sent < length:
            self._sent = length
            return self.output_text[sent:length]
        return ""
