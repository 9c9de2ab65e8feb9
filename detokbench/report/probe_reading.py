"""What a ``probe`` record says, in sentences made from its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from detokbench.records.probe import (
    COUNTED_SAYS,
    MEASURED,
    Comparison,
    Distribution,
    HoldBack,
    ProbeDetails,
    RequestFacts,
    ServerLoad,
    probe_details,
)
from detokbench.records.schema import Record
from detokbench.report.units import duration, percent, share, significant
from detokbench.report.verify_text import excerpt, plain, quoted

_MOST_TEXT = 40
_NOISE_FACTOR = 2
"""A hold-back counts where it is longer than the runs without stops differ, so many times."""
_SEEN_SHARE = 0.5
"""Of the gap between chunks: held text is late by one chunk at least, so that this would be seen;
the streams are quicker with nothing else running, hence not the whole gap."""
_FEW_TOKENS, _FEW_SHARE = 3, 0.1
"""Counts so near to each other tell no wrong tokenizer."""


def read_probe(record: Record) -> list[str]:
    """A sentence for each thing that the record can tell."""
    details = probe_details(record)
    measured = [facts for facts in details.requests if facts.outcome in MEASURED]
    return [
        *_chunks(measured),
        *_counts(details, measured),
        *_fields(details),
        *([] if details.server_load is None else _load(details.server_load)),
        *([] if details.hold_back is None else _hold_back(details.hold_back, details.chunk_gap)),
        *_comparisons(details),
        *_ids(details),
        f"The client used {share(details.client.cpu_share)} of a core while it measured.",
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
        f"({percent(empty / chunks)} %), {broken:,} with U+FFFD; {others:,} role, final and usage "
        "frames are left out."
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
    differing = [facts for facts in counted if len(set(facts.totals.values())) > 1]
    if differing:
        facts = next((facts for facts in differing if _other_tokenizer(facts)), differing[0])
        totals = ", ".join(f"{way} {total:,}" for way, total in facts.totals.items())
        yield f"Counts disagree, as for {plain(facts.prompt)}: {totals}{_other_tokenizer(facts)}."


def _other_tokenizer(facts: RequestFacts) -> str:
    """A question where the tokenizer's count is far from the server's; text may come apart
    into a few tokens more or less than it was made of.
    """
    by_text = facts.totals.get("tokenizer")
    server = [(way, total) for way, total in facts.totals.items() if way != "tokenizer"]
    if by_text is None or not server:
        return ""
    way, total = server[-1]
    if abs(by_text - total) <= max(_FEW_TOKENS, _FEW_SHARE * total):
        return ""
    return f"; is --tokenizer the model's? ({by_text:,} against {way} {total:,})"


def percentiles_need(details: ProbeDetails) -> str:
    """Which options give ITL its percentiles; empty where it has them."""
    if details.counted_by not in {"usage-total", "none"} or not details.ttft.samples:
        return ""
    if "logprobs" in details.fields_refused:
        return "--tokenizer"
    return "--tokenizer or --logprobs"


def _fields(details: ProbeDetails) -> Iterator[str]:
    refused = details.fields_refused
    if refused:
        more = "; without ids the text was not checked against them"
        yield (
            f"The server refuses the fields {', '.join(refused)}"
            f"{more if 'return_token_ids' in refused else ''}."
        )


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


def _hold_back(hold: HoldBack, gap: Distribution) -> Iterator[str]:
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
    elif gap.mean_s is not None and limit < _SEEN_SHARE * gap.mean_s:
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


def _comparisons(details: ProbeDetails) -> Iterator[str]:
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
