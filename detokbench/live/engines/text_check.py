"""Whether a front end sent the text of the ids that it was given; no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from detokbench.live.engines.known_texts import KnownText
from detokbench.live.engines.seen_streams import SeenStream
from detokbench.live.texts import Checked


def check_texts(
    streams: Iterable[SeenStream],
    known: Callable[[int], KnownText],
    stop: Sequence[str] = (),
    any_start: bool = False,
) -> Checked:
    """Compare whole texts of streams that ended, and beginnings of those that did not.

    An open character at the very end is left out of account: engines differ in what they send of
    it. ``any_start``: spaces at the start too, which chat templates and parsers of reasoning
    change.
    """
    checked = Checked(checked=0, wrong=0)
    for stream in streams:
        if stream.error:
            checked.wrong += 1
            checked.first = checked.first or f"request {stream.number}: {stream.error}"
            continue
        got = "".join(chunk.text for chunk in stream.chunks).rstrip("\ufffd")
        wanted = _cut(known(stream.number).text_of(stream.max_tokens), stop)
        if any_start:
            got, wanted = got.lstrip(), wanted.lstrip()
        checked.checked += 1
        if got != wanted if stream.ended else not wanted.startswith(got):
            checked.wrong += 1
            checked.first = checked.first or difference(stream.number, got, wanted)
    return checked


def _cut(text: str, stop: Sequence[str]) -> str:
    """The text before the stop string that is complete first."""
    found = [(text.find(s) + len(s), text.find(s)) for s in stop if s in text]
    return text[: min(found)[1]] if found else text


def difference(number: int, got: str, wanted: str) -> str:
    """The first place where two texts differ, in words."""
    pairs = zip(got, wanted, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(got), len(wanted)))
    came, sent = got[at : at + 20], wanted[at : at + 20]
    return f"request {number}, character {at}: {came!r} came where {sent!r} was due"
