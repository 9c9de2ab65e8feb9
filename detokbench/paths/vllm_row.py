"""What vLLM's two detokenizers share: the growing output text of a row and its deltas."""

from __future__ import annotations

from abc import ABC, abstractmethod


class VllmRow(ABC):
    """One request's ids and text (vllm/v1/engine/detokenizer.py, BaseIncrementalDetokenizer).

    Stop strings are looked for around the row, by ``CharacterStops``, so that ``stop`` is empty
    here. What vLLM asks at every step on their account is asked all the same: it is a fifth of
    what a token costs on the fast path.
    """

    def __init__(self) -> None:
        self.token_ids: list[int] = []
        self.output_text = ""
        self.stop: list[str] = []
        self.min_tokens = 0
        self.keep_stop = False
        self.hold_back = 0
        self._sent = 0

    @abstractmethod
    def decode_next(self, token_id: int) -> str:
        """The text that ``token_id``, already appended to ``token_ids``, makes final."""

    def num_output_tokens(self) -> int:
        """Ids of the output so far."""
        return len(self.token_ids)

    def update(self, new_ids: list[int], stop_terminated: bool = False) -> list[int] | None:
        """Append ids one at a time, whatever their number, as vLLM does.

        Returns the lengths of the text before and after each of them, where stops are to be looked
        for in it. ``stop_terminated`` leaves the text of the last id out, unless stops are kept.
        """
        if not new_ids:
            return None
        skipped: int | None = None
        if stop_terminated and not self.keep_stop:
            new_ids, skipped = new_ids[:-1], new_ids[-1]
        before = self.num_output_tokens()
        offsets = [len(self.output_text)] if self.stop else None
        for token_id in new_ids:
            self.token_ids.append(token_id)
            self.output_text += self.decode_next(token_id)
            if offsets is not None:
                offsets.append(len(self.output_text))
        if skipped is not None:
            self.token_ids.append(skipped)
        if offsets is not None and self.num_output_tokens() > self.min_tokens:
            return offsets[max(self.min_tokens - before, 0) :]
        return None

    def next_delta(self, finished: bool = False) -> str:
        """The text since the last call, less what is held back until the request has finished."""
        hold_back = 0 if finished else self.hold_back
        length = len(self.output_text) - hold_back
        sent = self._sent
        if sent < length:
            self._sent = length
            return self.output_text[sent:length]
        return ""
