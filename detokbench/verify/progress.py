"""How far a stream had come by the end of each step, against how far it should have."""

from __future__ import annotations

from collections.abc import Iterator

from detokbench.verify.stream import Observation, Stream
from detokbench.verify.truth import Truth


class Progress:
    """What had been sent and what was certain by the end of each step; the end is a step more."""

    def __init__(self, stream: Stream, truth: Truth, seen: Observation, size: int | None) -> None:
        self.stream, self.truth, self.seen = stream, truth, seen
        per_step = size or max(len(stream.output), 1)
        last = len(stream.output)
        self._certain = [
            truth.lengths[min(last, per_step * (i + 1))] for i in range(len(seen.deltas))
        ]
        self.first_wrong, self.first_false = self._find_first()
        self.longest_wait, self.longest_wait_step = self._find_longest_wait()

    def expected_by(self, step: int) -> str:
        """The text that was certain by the end of a step; for the end, all that is due."""
        if step > len(self._certain):
            return self.truth.text
        return self.truth.certain[: self._certain[step - 1]]

    def got_by(self, step: int) -> str:
        """What had been sent by the end of a step."""
        if step > len(self.seen.deltas):
            return self.seen.text
        return "".join(self.seen.deltas[:step])

    def _find_first(self) -> tuple[int, int | None]:
        """The first step whose text is not the right one, and the first that sent a false one.

        Text that comes late is right; text of which something is missing in front is wrong, but
        not false. The end of the stream counts as a step.
        """
        end = len(self._certain) + 1
        wrong: int | None = None
        false: int | None = None
        sent = at = 0
        for step, delta, due, known in self._steps():
            if wrong is None:
                if due.startswith(delta, sent) and sent + len(delta) <= known:
                    sent += len(delta)
                    at = sent
                    continue
                wrong = step
            at = advance(due, delta, at, known)
            if at < 0:
                false = step
                break
        return wrong or end, false

    def _steps(self) -> Iterator[tuple[int, str, str, int]]:
        """Each step's delta, the text it has to agree with, and how much of that is certain."""
        pairs = zip(self.seen.deltas, self._certain, strict=True)
        for number, (delta, known) in enumerate(pairs, 1):
            yield number, delta, self.truth.certain, known
        yield len(self._certain) + 1, self.seen.ending, self.truth.text, len(self.truth.text)

    def _find_longest_wait(self) -> tuple[int, int]:
        """The most further ids that a complete character waited for, while all sent was right."""
        longest, at_step, sent = 0, 0, 0
        lengths = self.truth.lengths
        oldest = 0
        for step, delta in enumerate(self.seen.deltas, 1):
            if step >= self.first_wrong:
                break
            sent += len(delta)
            if sent >= self._certain[step - 1]:
                continue
            while lengths[oldest] <= sent:
                oldest += 1
            wait = step - oldest + 1
            if wait > longest:
                longest, at_step = wait, step
        return longest, at_step


def advance(text: str, delta: str, at: int, known: int) -> int:
    """Find the characters of ``delta`` in order in ``text[at:known]``; -1 where one is missing."""
    for character in delta:
        found = text.find(character, at, known)
        if found < 0:
            return -1
        at = found + 1
    return at
