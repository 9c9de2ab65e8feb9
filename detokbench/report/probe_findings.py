"""What the checks of a ``probe`` found: hold-back, streamed text, ids against text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from detokbench.records.probe import Comparison, ProbeDetails
from detokbench.report.units import duration
from detokbench.report.verify_text import excerpt, plain, quoted

_MOST_TEXT = 40
_NOISE_FACTOR = 2
"""A hold-back counts where it is longer than the runs without stops differ, so many times."""
_SEEN_SHARE = 0.5
"""Of the gap between chunks: held text is late by one chunk at least, so that this would be seen;
the streams are quicker with nothing else running, hence not the whole gap."""


def hold_back_says(details: ProbeDetails) -> Iterator[str]:
    """What stop strings held back, and whether it would have been seen."""
    hold, gap_s = details.hold_back, details.chunk_gap.mean_s
    if hold is None:
        return
    stops = ", ".join(excerpt(stop, 0, _MOST_TEXT) for stop in hold.stop)
    if hold.held_s is None or hold.later_s is None:
        yield f"Stop {stops}: no hold-back could be measured, {hold.note}."
        return
    noise = hold.noise_s or 0.0
    limit = _NOISE_FACTOR * noise
    where = f"over {hold.characters:,} characters, {hold.repeats} runs each"
    if hold.held_s > limit:
        yield (
            f"Stop {stops}: text is held back {duration(hold.held_s)}, {hold.behind or 0:g} "
            f"characters (medians; at most {duration(hold.most_held_s or 0)} and "
            f"{hold.most_behind or 0} characters; {where})."
        )
    elif gap_s is not None and limit < _SEEN_SHARE * gap_s:
        yield (
            f"Stop {stops}: no hold-back; one beyond {duration(limit)} would be seen (runs without "
            f"it differ by {duration(noise)}; {where})."
        )
    else:
        yield (
            f"Stop {stops}: inconclusive: runs without it differ by {duration(noise)} anyway, a "
            f"hold-back below {duration(limit)} cannot be seen ({where})."
        )
    if hold.end_later_s is not None and hold.end_later_s > limit:
        yield (
            f"With the stop string the same text ended {duration(hold.end_later_s)} later than "
            "without it: the stream was slower, and that much is no hold-back."
        )


def comparisons_say(details: ProbeDetails) -> Iterator[str]:
    """Streamed texts against the answers without a stream."""
    found = details.comparisons
    if not found:
        return
    compared = [entry for entry in found if entry.verdict in {"same", "differs"}]
    same = sum(entry.verdict == "same" for entry in compared)
    said = [f"equals the unstreamed answer in {same} of {_prompts(len(compared))}"]
    for why, number in _reasons(found).items():
        said.append(f"not compared ({_prompts(number)}: {why})")
    if details.not_compared:
        said.append(f"{details.not_compared:,} more were not asked")
    yield f"Streamed text: {'; '.join(said if compared else said[1:])}."
    for entry in compared:
        if entry.verdict == "differs":
            yield (
                f"{plain(entry.prompt)}: streamed text differs from character {entry.at}: "
                f"{quoted(entry.streamed)} streamed, {quoted(entry.whole)} without a stream."
            )


def _reasons(found: list[Comparison]) -> Counter[str]:
    """Why prompts were not compared, and how many for each reason."""
    notes = Counter[str]()
    for entry in found:
        if entry.verdict == "failed":
            notes[plain(entry.note)] += 1
        elif entry.verdict == "not-repeatable":
            notes[f"the server does not repeat itself; {plain(entry.note)}"] += 1
    return notes


def _prompts(number: int) -> str:
    return f"{number} prompt{'' if number == 1 else 's'}"


def ids_say(details: ProbeDetails) -> Iterator[str]:
    """The text of the ids against the text that came."""
    ids = details.ids
    if ids is None:
        return
    yield (
        f"The ids that came give the text that came in {ids.same} of {ids.requests} streams, by "
        f"the table of bytes of {plain(ids.tokenizer)}."
    )
    if ids.unknown_ids:
        yield (
            f"{ids.unknown_ids:,} ids are none of {plain(ids.tokenizer)}'s: another tokenizer than "
            "the server's."
        )
    elif ids.at is not None:
        yield (
            f"{plain(ids.prompt)}: from character {ids.at} the ids say {quoted(ids.expected)} and "
            f"the text says {quoted(ids.got)}: the model's ids are not to blame."
        )
