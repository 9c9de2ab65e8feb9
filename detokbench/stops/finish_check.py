"""Whether a request ends in this step, and where: SGLang's finish check.

After SGLang 0.5.23 (``Req.update_finish_state``): stop strings come first, then stop regexes, then
stop ids, then the length. A step may accept several ids, so that a stop and the length cap fall
into it together: the stop counts if it ends within the cap, and is demoted to the length if it
lies past it (sglang#31599). Left out: the check for ids outside the vocabulary before all others,
and grammars after.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from detokbench.stops.tail_window import Decode, TailWindow


class FinishReason(StrEnum):
    """Why a request ended."""

    STOP_STRING = "stop string"
    STOP_REGEX = "stop regex"
    STOP_ID = "stop id"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a request: ``length`` ids are kept, what fired included.

    ``matched`` is the stop string, the pattern or the id; None for the length.
    """

    reason: FinishReason
    matched: str | int | None
    length: int


def first_contained(tail: str, strings: Sequence[str]) -> str | None:
    """The first of the stop strings, in the order of the list, that lies anywhere in the tail."""
    return next((stop for stop in strings if stop in tail), None)


@dataclass(frozen=True, slots=True)
class StopCheck:
    """The stops of one request, looked for in the tail of its output."""

    strings: tuple[str, ...]
    regexes: tuple[str, ...]
    window: TailWindow
    decode: Decode

    def find(self, output_ids: Sequence[int], accepted: int = 1) -> Finish | None:
        """A stop that ``accepted`` new ids completed, at the id that completed it.

        One decode without a match; one more for each accepted id but the last to find the end of
        a match, and the same for each regex that does not match. Raises ``re.error`` for a pattern
        that Python does not accept.
        """
        if not self.strings and not self.regexes:
            return None
        tail = self.decode(self.window.ids(output_ids, accepted))
        stop = first_contained(tail, self.strings)
        if stop is not None:
            end = self._earliest_end(output_ids, accepted, lambda text: stop in text)
            return Finish(FinishReason.STOP_STRING, stop, end or len(output_ids))
        for pattern in self.regexes:
            end = self._regex_end(output_ids, accepted, pattern, tail)
            if end is not None:
                return Finish(FinishReason.STOP_REGEX, pattern, end)
        return None

    def _regex_end(
        self, output_ids: Sequence[int], accepted: int, pattern: str, tail: str
    ) -> int | None:
        in_tail = re.search(pattern, tail) is not None
        # Without a match in the whole tail there may still be one in front of its last ids, for a
        # pattern that ends in an anchor.
        end = self._earliest_end(
            output_ids, accepted, lambda text: re.search(pattern, text) is not None
        )
        return len(output_ids) if end is None and in_tail else end

    def _earliest_end(
        self, output_ids: Sequence[int], accepted: int, matches: Callable[[str], bool]
    ) -> int | None:
        """Ids of output at which ``matches`` first holds, the last accepted id not tried."""
        ids = self.window.ids(output_ids, accepted)
        start = len(output_ids) - len(ids)
        for count in range(max(1, len(ids) - accepted + 1), len(ids)):
            if matches(self.decode(ids[:count])):
                return start + count
        return None


def find_finish(
    output_ids: Sequence[int],
    accepted: int,
    max_new_tokens: int,
    stops: StopCheck,
    stop_ids: Collection[int] = (),
) -> Finish | None:
    """The end of a request after a step that appended ``accepted`` ids, or None to go on."""
    finish = stops.find(output_ids, accepted) or _find_stop_id(output_ids, accepted, stop_ids)
    if finish is None:
        if len(output_ids) < max_new_tokens:
            return None
        return Finish(FinishReason.LENGTH, None, max_new_tokens)
    if finish.length > max_new_tokens:
        return Finish(FinishReason.LENGTH, None, max_new_tokens)
    return finish


def _find_stop_id(
    output_ids: Sequence[int], accepted: int, stop_ids: Collection[int]
) -> Finish | None:
    first = len(output_ids) - accepted
    for index in range(first, len(output_ids)):
        if output_ids[index] in stop_ids:
            return Finish(FinishReason.STOP_ID, output_ids[index], index + 1)
    return None
