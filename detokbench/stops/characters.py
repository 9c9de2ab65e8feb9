"""``characters``: stop strings as vLLM looks for them, in the text of the output.

After vLLM 0.33.0: v1/engine/detokenizer.py (``BaseIncrementalDetokenizer``,
``check_stop_strings``), v1/core/sched/utils.py (``check_stop``) and v1/core/sched/scheduler.py
(``_update_request_with_output``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from detokbench.errors import usage_error
from detokbench.stops.request import StopFinish, StopRequest, TextRow


@dataclass(frozen=True, slots=True)
class FoundStop:
    """A stop string at ``text[begin:end]``."""

    stop: str
    begin: int
    end: int


def find_earliest(text: str, new_chars: int, strings: Sequence[str]) -> FoundStop | None:
    """The stop that ends first among those that end in the last ``new_chars`` characters.

    Of those that end together the first of the list. Looks back just far enough: the new
    characters and, before them, one character less than the stop has.
    """
    best: FoundStop | None = None
    if not new_chars:
        return None
    for stop in strings:
        begin = text.find(stop, max(len(text) - new_chars - len(stop) + 1, 0))
        end = begin + len(stop)
        if begin >= 0 and (best is None or end < best.end):
            best = FoundStop(stop, begin, end)
    return best


class CharacterStops:
    """A row whose last characters are held back: the longest stop less one, always.

    Nothing is held where ``keep_stop`` keeps the stop. At the end all of it goes out, but no text
    that the detokenizer itself still holds. Ids that a step brought after the one that completed a
    stop are dropped. A stop id is taken off before its text is decoded, unless the stop is kept; a
    stop string completed in the same step goes before it. The scheduler stops at a stop id at any
    place, also within ``min_tokens``: in vLLM the sampler keeps one from being drawn there.
    """

    def __init__(self, request: StopRequest, row: TextRow) -> None:
        """Raises a usage error for regexes, which vLLM does not have."""
        if request.regexes:
            raise usage_error("vLLM looks for stop strings only; it knows no stop regexes")
        self.finish: StopFinish | None = None
        self._request = request
        self._row = row
        longest = max(map(len, request.strings), default=1)
        self._hold = 0 if request.keep_stop else longest - 1
        self._ids = 0
        self._text = ""
        self._sent = 0

    @property
    def held(self) -> str:
        """Text that waits: at most the longest stop less one character."""
        return self._text[self._sent :]

    def step(self, new_ids: list[int]) -> str:
        if self.finish is not None or not new_ids:
            return ""
        ids, stop_id = self._through_stop_id(new_ids)
        offsets = self._decode(ids, stop_id)
        found = self._find(offsets)
        if found is not None:
            kept = bisect_left(offsets, found.end, lo=1)
            self.finish = StopFinish(found.stop, self._ids + kept, found.begin, found.end)
            self._text = self._text[: found.end if self._request.keep_stop else found.begin]
        elif stop_id is not None:
            self.finish = StopFinish(stop_id, self._ids + len(ids))
        self._ids += len(ids)
        if self.finish is not None:
            self._row.end()
            return self._send(hold=0)
        return self._send(self._hold)

    def end(self) -> str:
        if self.finish is not None:
            return ""
        return self._send(hold=0) + self._row.end()

    def _through_stop_id(self, new_ids: list[int]) -> tuple[list[int], int | None]:
        for position, token_id in enumerate(new_ids, 1):
            if token_id in self._request.stop_ids:
                return new_ids[:position], token_id
        return new_ids, None

    def _decode(self, ids: list[int], stop_id: int | None) -> list[int]:
        """Feed a step's ids one by one; the length of the text before and after each of them."""
        offsets = [len(self._text)]
        for position, token_id in enumerate(ids, 1):
            is_popped = position == len(ids) and stop_id is not None and not self._request.keep_stop
            if not is_popped:
                self._text += self._row.step([token_id])
            offsets.append(len(self._text))
        return offsets

    def _find(self, offsets: Sequence[int]) -> FoundStop | None:
        """A stop that ends after the first ``min_tokens`` ids and in this step."""
        passed_over = max(self._request.min_tokens - self._ids, 0)
        if passed_over >= len(offsets) - 1:
            return None
        return find_earliest(
            self._text, len(self._text) - offsets[passed_over], self._request.strings
        )

    def _send(self, hold: int) -> str:
        sent, length = self._sent, len(self._text) - hold
        if length <= sent:
            return ""
        self._sent = length
        return self._text[sent:length]
