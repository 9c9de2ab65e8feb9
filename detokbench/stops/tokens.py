"""``tokens``: stops as SGLang looks for them, in a tail of the output's tokens.

After SGLang 0.5.23: managers/schedule_batch.py (``Req.update_finish_state``),
managers/scheduler_components/output_streamer.py (``OutputStreamer.accept``, streaming, interval 1)
and managers/detokenizer_manager.py (``trim_matched_stop``, ``_decode_batch_token_id_output``).
"""

from __future__ import annotations

import sys

from detokbench.stops.finish_check import Finish, FinishReason, StopCheck, find_finish
from detokbench.stops.prefix_check import suppresses_chunk
from detokbench.stops.request import StopFinish, StopRequest, TextRow
from detokbench.stops.tail_window import Decode, Encode, TailWindow

_NO_CAP = sys.maxsize


class TokenStops:
    """A row behind SGLang's scheduler: whole chunks wait, and the detokenizer trims.

    The scheduler finds a stop in the decoded tail and keeps the ids through the one that completed
    it. A chunk whose end may be the beginning of a stop string is not sent to the detokenizer
    until a later step lets it go. The detokenizer then cuts the whole text at the first place
    where the matched string stands, which may lie before the place that fired, and before what has
    been sent: nothing is taken back, and nothing more goes out. For a regex it looks for the text
    of the pattern, so that what the regex matched stays in the output.

    ``min_tokens`` is without effect: in SGLang it only keeps stop ids from being drawn
    (``BatchedMinNewTokensPenalizer``), and stop strings fire all the same.

    The engine decodes the ids that come with the end in a branch of their own; here they go
    through the row's ``step`` and ``end``. The text is the same, but for rows that send text twice
    or change what they sent: where the printable part of an unfinished character shrinks in the
    very last chunk (a stop id that is kept and is no text alone, after an ideograph and another
    such id), the ideograph comes twice here. Left out: an id outside the vocabulary, at which
    the engine ends the request before it decodes (``_check_vocab_boundary_finish``).
    """

    def __init__(self, request: StopRequest, row: TextRow, encode: Encode, decode: Decode) -> None:
        """``decode`` must keep special tokens, as the scheduler's does; its errors go through.

        Raises a usage error for a regex that is not valid.
        """
        self.finish: StopFinish | None = None
        self.trimmed_at: int | None = None
        """Where the detokenizer cut the text, in characters; None if it did not."""
        self.fired_at: int | None = None
        """Where the stop string that the last kept id completed begins; None if not in the text."""
        self._request = request
        self._row = row
        self._window = TailWindow.for_stops(request.strings, request.regexes, encode)
        self._check = StopCheck(request.strings, request.regexes, self._window, decode)
        self._decode = decode
        self._ids: list[int] = []
        self._handed_over = 0
        self._sent: list[str] = []

    @property
    def held(self) -> str:
        """The text of the ids that wait in the scheduler, decoded by themselves."""
        waiting = self._ids[self._handed_over :]
        return self._decode(waiting) if waiting and self.finish is None else ""

    def step(self, new_ids: list[int]) -> str:
        if self.finish is not None or not new_ids:
            return ""
        self._ids.extend(new_ids)
        found = find_finish(self._ids, len(new_ids), _NO_CAP, self._check, self._request.stop_ids)
        if found is not None:
            return self._finish_with(found)
        if suppresses_chunk(self._ids, self._request.strings, self._window, self._decode):
            return ""
        text = self._hand_over(len(self._ids))
        self._sent.append(text)
        return text

    def end(self) -> str:
        if self.finish is not None:
            return ""
        return self._hand_over(len(self._ids)) + self._row.end()

    def _hand_over(self, end: int) -> str:
        """Send the waiting ids before ``end`` to the detokenizer."""
        ids = self._ids[self._handed_over : end]
        self._handed_over = end
        return self._row.step(ids) if ids else ""

    def _finish_with(self, found: Finish) -> str:
        assert found.matched is not None
        is_id = found.reason is FinishReason.STOP_ID
        drops_id = is_id and not self._request.keep_stop
        rest = self._hand_over(found.length - drops_id) + self._row.end()
        sent = sum(map(len, self._sent))
        text = "".join(self._sent) + rest
        self.finish = StopFinish(found.matched, found.length)
        if is_id:
            return rest
        matched = str(found.matched)
        begin = text.find(matched)
        if begin < 0:
            return rest
        end = begin + len(matched)
        self.finish = StopFinish(matched, found.length, begin, end)
        if found.reason is FinishReason.STOP_STRING:
            self.fired_at = self._completed_at(text, matched, found.length)
        self.trimmed_at = end if self._request.keep_stop else begin
        return text[sent : self.trimmed_at]

    def _completed_at(self, text: str, stop: str, kept: int) -> int | None:
        """The first place of ``stop`` that ends in the text of the last kept id."""
        before = self._decode(self._ids[: kept - 1]).rstrip("\ufffd")
        last = len(self._decode(self._ids[:kept])) - len(before)
        begin = text.find(stop, max(len(text) - last - len(stop) + 1, 0))
        return begin if begin >= 0 else None
