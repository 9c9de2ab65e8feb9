"""What a ``probe`` record says, in sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from detokbench.records.probe import (
    COUNTED_SAYS,
    MEASURED,
    Comparison,
    HoldBack,
    ProbeDetails,
    RequestFacts,
    ServerLoad,
    probe_details,
)
from detokbench.records.schema import Record
from detokbench.report.units import duration, significant
from detokbench.report.verify_text import excerpt, plain, quoted

_MOST_TEXT = 40
_NOISE_FACTOR = 2
"""A hold-back counts where it is longer than the runs without stops differ, so many times."""


def read_probe(record: Record) -> list[str]:
    """A sentence for each thing that the record can tell."""
    details = probe_details(record)
    measured = [facts for facts in details.requests if facts.outcome in MEASURED]
    return [
        *_chunks(measured),
        *_counts(details, measured),
        *_fields(details),
        *([] if details.server_load is None else _load(details.server_load)),
        *([] if details.hold_back is None else _hold_back(details.hold_back)),
        *_comparisons(details),
        *_ids(details),
        f"The client used {details.client.cpu_share:.0%} of a core while it measured.",
    ]


def _chunks(measured: list[RequestFacts]) -> Iterator[str]:
    chunks = sum(facts.chunks for facts in measured)
    if not chunks:
        yield "No stream came whole: nothing was measured."
        return
    empty = sum(facts.empty_chunks for facts in measured)
    broken = sum(facts.replacement_chunks for facts in measured)
    others = sum(facts.other_frames for facts in measured)
    yield (
        f"{chunks:,} chunks in {len(measured):,} streams: {empty:,} empty "
        f"({empty / chunks:.1%}), {broken:,} with U+FFFD; {others:,} role, final and usage frames "
        "are left out."
    )
    cumulative = sum(facts.cumulative for facts in measured)
    if cumulative:
        yield f"{cumulative:,} streams were cumulative: each chunk repeats the text before it."


def _counts(details: ProbeDetails, measured: list[RequestFacts]) -> Iterator[str]:
    if not measured:
        return
    if details.counted_by == "none":
        yield f"Tokens are counted by {COUNTED_SAYS['none']}."
        return
    counted = [facts for facts in measured if facts.tokens is not None]
    tokens = sum(facts.tokens or 0 for facts in counted)
    filled = sum(facts.chunks - facts.empty_chunks for facts in counted)
    a_chunk = significant(tokens / filled, 3) if filled else "–"
    yield (
        f"{tokens:,} tokens, {a_chunk} for each chunk with text; counted by "
        f"{COUNTED_SAYS[details.counted_by]}."
    )
    for facts in counted:
        if len(set(facts.totals.values())) > 1:
            totals = ", ".join(f"{way} {total:,}" for way, total in facts.totals.items())
            yield f"Counts disagree, first for {plain(facts.prompt)}: {totals}."
            return


def _fields(details: ProbeDetails) -> Iterator[str]:
    if details.fields_refused:
        yield f"The server refuses the fields {', '.join(details.fields_refused)}."


def _load(load: ServerLoad) -> Iterator[str]:
    parts = []
    if load.most_running is not None:
        parts.append(f"at most {load.most_running:,.0f} requests running")
    if load.before.running is not None:
        parts.append(f"{load.before.running:,.0f} before this began")
    if load.tokens_per_s is not None:
        parts.append(f"{significant(load.tokens_per_s, 3)} tokens/s")
    if load.itl_s is not None:
        parts.append(f"mean ITL {duration(load.itl_s)}")
    yield f"By the server's own /metrics ({plain(load.engine)}): {', '.join(parts) or 'nothing'}."


def _hold_back(hold: HoldBack) -> Iterator[str]:
    stops = ", ".join(excerpt(stop, 0, _MOST_TEXT) for stop in hold.stop)
    if hold.held_s is None or hold.later_s is None:
        yield f"Stop {stops}: no hold-back could be measured, {hold.note}."
        return
    noise = hold.noise_s or 0.0
    where = f"over {hold.characters:,} characters, {hold.repeats} runs each"
    if hold.held_s > _NOISE_FACTOR * noise:
        yield (
            f"Stop {stops}: text is held back {duration(hold.held_s)}, {hold.behind or 0:g} "
            f"characters (medians; at most {duration(hold.most_held_s or 0)} and "
            f"{hold.most_behind or 0} characters; {where})."
        )
    else:
        yield (
            f"Stop {stops}: no hold-back seen beyond {duration(_NOISE_FACTOR * noise)}, twice "
            f"what runs without it differ by ({where})."
        )
    if hold.end_later_s is not None and hold.end_later_s > _NOISE_FACTOR * noise:
        yield f"With it the whole stream was {duration(hold.end_later_s)} slower."


def _comparisons(details: ProbeDetails) -> Iterator[str]:
    found = details.comparisons
    if not found:
        return
    same = sum(entry.verdict == "same" for entry in found)
    more = f"; {details.not_compared} more were not compared" if details.not_compared else ""
    yield f"Streamed text is the answer without a stream in {same} of {len(found)} prompts{more}."
    yield from (_comparison(entry) for entry in found if entry.verdict != "same")


def _comparison(entry: Comparison) -> str:
    name = plain(entry.prompt)
    if entry.verdict == "failed":
        return f"{name}: not compared, {plain(entry.note)}."
    if entry.verdict == "not-repeatable":
        return f"{name}: the server does not repeat itself; {plain(entry.note)}."
    return (
        f"{name}: streamed text differs from character {entry.at}: {quoted(entry.streamed)} "
        f"streamed, {quoted(entry.whole)} without a stream."
    )


def _ids(details: ProbeDetails) -> Iterator[str]:
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
