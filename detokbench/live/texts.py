"""Whether what arrived is the text of the ids that were sent, for the sampled requests."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from detokbench.live.arrivals import Running
from detokbench.live.counting import is_sampled
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.streams import Workload

MOST_STREAMS = 2000
"""Texts that are kept of one run: enough to find a fault, and bounded."""


class Checked(msgspec.Struct, kw_only=True):
    """``first`` shows the first difference; empty where there is none."""

    checked: int
    wrong: int
    first: str = ""


class SentTexts:
    """The ids that sampled requests got, and the text that belongs to them."""

    def __init__(self, vocabulary: Vocabulary, workload: Workload, stop: tuple[str, ...]) -> None:
        self._vocabulary = vocabulary
        self._workload = workload
        self._stop = stop
        self._ids: dict[int, int] = {}

    def remember(self, requests: Sequence[Running], batch: int) -> None:
        """Take in how many ids these have got by now, until there are enough."""
        for request in requests:
            if is_sampled(request.number, batch) and len(self._ids) < 4 * MOST_STREAMS:
                self._ids[request.number] = request.position

    def forget(self) -> None:
        """Begin anew: the requests of another run are not asked for again."""
        self._ids.clear()

    def check(self, streams: Sequence[tuple[int, str, str]]) -> Checked:
        """How many of (request, text, finish) are wrong, and the first difference in words.

        Requests that were not remembered are not checked. An open character at the very end is
        left out of account: engines differ in what they send of it.
        """
        checked = Checked(checked=0, wrong=0)
        for number, text, finish in streams:
            if number not in self._ids:
                continue
            checked.checked += 1
            expected = self._expected(number, finish)
            if text.rstrip("\ufffd") != expected.rstrip("\ufffd"):
                checked.wrong += 1
                checked.first = checked.first or _difference(number, text, expected)
        return checked

    def _expected(self, number: int, finish: str) -> str:
        row = number % len(self._workload.outputs)
        prompt = self._workload.prompts[row]
        ids = self._workload.outputs[row][: self._ids[number]]
        before = self._vocabulary.decode(prompt)
        text = self._vocabulary.decode([*prompt, *ids])[len(before) :]
        if finish != "stop":
            return text
        found = [(text.find(s) + len(s), text.find(s)) for s in self._stop if s in text]
        return text[: min(found)[1]] if found else text


def _difference(number: int, got: str, expected: str) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b),
        min(len(got), len(expected)),
    )
    return (
        f"request {number}, character {at}: {got[at : at + 20]!r} came where "
        f"{expected[at : at + 20]!r} was sent"
    )
