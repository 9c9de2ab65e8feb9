"""What several answers say together: texts compared, the hold-back of a stop, ids against text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from codecs import utf_8_decode
from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from detokbench.live.openai_stream import Answer
from detokbench.live.probe_judge import Judged
from detokbench.live.probe_secrets import blotted
from detokbench.records.probe import Comparison, HoldBack, IdCheck
from detokbench.vocab.vocabulary import Vocabulary

_AROUND = 20
_MOST_PLACES = 4096


def compare_texts(prompt: str, streamed: str, first: str, second: str) -> Comparison:
    """A streamed text against two answers that were not streamed.

    Where those two differ from each other, the server does not repeat itself, and nothing follows.
    """
    if streamed in {first, second}:
        return Comparison(prompt=prompt, verdict="same")
    if first != second:
        at = _in_common(first, second)
        note = f"two answers that were not streamed differ at character {at} already"
        return Comparison(prompt=prompt, verdict="not-repeatable", at=at, note=note)
    at = _in_common(streamed, first)
    return Comparison(
        prompt=prompt,
        verdict="differs",
        at=at,
        streamed=_around(streamed, at),
        whole=_around(first, at),
    )


def _in_common(*texts: str) -> int:
    """The number of characters that all texts begin with."""
    places = enumerate(zip(*texts, strict=False))
    whole = min(map(len, texts), default=0)
    return next((place for place, letters in places if len(set(letters)) > 1), whole)


def _around(text: str, at: int) -> str:
    return text[max(0, at - _AROUND) : at + _AROUND]


class Curve(NamedTuple):
    """How a text grew: characters there after each chunk, and when, since the request was sent."""

    text: str
    at_s: list[float]
    characters: list[int]
    end_s: float
    """When the last frame came."""

    def reached_s(self, place: int) -> float:
        """When the text had so many characters."""
        return self.at_s[bisect_left(self.characters, place)]

    def reached(self, at_s: float) -> int:
        """How many characters there were at a time."""
        number = bisect_right(self.at_s, at_s)
        return self.characters[number - 1] if number else 0


def curve_of(answer: Answer, sent_s: float) -> Curve:
    """The growth of a stream's text."""
    chunks = [chunk for chunk in answer.chunks if chunk.text]
    return Curve(
        "".join(chunk.text for chunk in chunks),
        [chunk.at_s - sent_s for chunk in chunks],
        list(accumulate(len(chunk.text) for chunk in chunks)),
        answer.chunks[-1].at_s - sent_s if answer.chunks else 0.0,
    )


def hold_back(
    stop: list[str], prompt: str, with_stop: Sequence[Curve], without: Sequence[Curve]
) -> HoldBack:
    """How much later, and how many characters behind, text came with the stops than without.

    Runs are repeated; at each place of the text that all have in common, medians over the runs are
    compared. What is held back comes at the end at the latest, so a stream whose end is later too
    was slower by that much, and did not hold text back: that part is taken off. Where a stop cut
    the text short the ends say nothing, and nothing is taken off.
    """
    runs = [*with_stop, *without]
    common = _in_common(*(run.text for run in runs))
    found = HoldBack(
        stop=stop, prompt=prompt, repeats=len(with_stop), characters=common, later_s=None,
        end_later_s=None, held_s=None, most_held_s=None, behind=None, most_behind=None,
        noise_s=None,
    )  # fmt: skip
    if not common:
        found.note = "the texts have nothing in common"
        return found
    places = range(1, common + 1, -(-common // _MOST_PLACES))
    later = [_reached_s(with_stop, place) - _reached_s(without, place) for place in places]
    shift = 0.0
    if all(len(run.text) == common for run in runs):
        shift = median(run.end_s for run in with_stop) - median(run.end_s for run in without)
        found.end_later_s = shift
    found.later_s = median(later)
    found.held_s, found.most_held_s = found.later_s - shift, max(later) - shift
    found.noise_s = _noise_s(without, places)
    behind = _behind(with_stop, without, common, shift)
    if behind:
        found.behind, found.most_behind = median(behind), int(max(behind))
    return found


def _noise_s(without: Sequence[Curve], places: Sequence[int]) -> float | None:
    """How far two halves of the same runs are apart, in the median over places."""
    half = len(without) // 2
    if not half:
        return None
    ones, others = without[:half], without[half:]
    return median(abs(_reached_s(ones, at) - _reached_s(others, at)) for at in places)


def _behind(
    with_stop: Sequence[Curve], without: Sequence[Curve], common: int, shift: float
) -> list[float]:
    """Characters that were there without the stops and not with them, at each arrival."""
    return [
        max(0.0, min(common, median(other.reached(at_s - shift) for other in without)) - characters)
        for run in with_stop
        for at_s, characters in zip(run.at_s, run.characters, strict=True)
        if characters < common
    ]


def _reached_s(runs: Sequence[Curve], place: int) -> float:
    return median(run.reached_s(place) for run in runs)


def check_ids(
    entry: Judged, vocabulary: Vocabulary, secrets: tuple[str, ...] = ()
) -> IdCheck | None:
    """The text of a request's ids by the table of bytes, against the text that came.

    None without ids. A character that the ids leave open at the end may be missing or be U+FFFD.
    Raises UnsupportedFamilyError where the vocabulary has no such table.
    """
    ids = [i for chunk in entry.answer.chunks for i in chunk.ids or []]
    if not ids:
        return None
    unknown, texts = _texts_of(ids, vocabulary)
    found = IdCheck(tokenizer=vocabulary.name, requests=1, same=0, unknown_ids=unknown)
    if entry.text in texts:
        found.same = 1
        return found
    expected, got = blotted(texts[0], secrets), blotted(entry.text, secrets)
    found.at = _in_common(expected, got)
    found.prompt = entry.raw.prompt
    found.expected, found.got = _around(expected, found.at), _around(got, found.at)
    return found


def add_up(checks: Sequence[IdCheck]) -> IdCheck | None:
    """The checks of many requests as one, with the place where the first differs; None of none."""
    if not checks:
        return None
    shown = next((check for check in checks if check.at is not None), checks[0])
    return replace(
        shown,
        requests=sum(check.requests for check in checks),
        same=sum(check.same for check in checks),
        unknown_ids=sum(check.unknown_ids for check in checks),
    )


def _texts_of(ids: Sequence[object], vocabulary: Vocabulary) -> tuple[int, list[str]]:
    """How many ids are none of the vocabulary's, and the right texts of the others.

    There are up to four: with and without a space in front, which depends on the prompt, and with
    and without the open character at the end.
    """
    table = vocabulary.id_bytes
    known = [
        i for i in ids
        if isinstance(i, int) and 0 <= i < len(table.pieces) and table.pieces[i] is not None
    ]  # fmt: skip
    stripped = table.join(known)
    whole = b"".join(table.pieces[i] or b"" for i in known if i not in table.special_ids)
    texts = []
    for data in dict.fromkeys((stripped, whole)):
        texts += [utf_8_decode(data, "replace", False)[0], data.decode("utf-8", "replace")]
    return len(ids) - len(known), texts
