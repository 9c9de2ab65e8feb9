"""What a ``probe`` record says, in sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from detokbench.records.probe import (
    COUNTED_SAYS,
    MEASURED,
    ProbeDetails,
    RequestFacts,
    ServerLoad,
    probe_details,
)
from detokbench.records.schema import Record
from detokbench.report.probe_findings import comparisons_say, hold_back_says, ids_say
from detokbench.report.units import duration, percent, share, significant
from detokbench.report.verify_text import plain

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
        *hold_back_says(details),
        *comparisons_say(details),
        *ids_say(details),
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
