"""What a ``measure-c`` record says, in a few sentences made from its numbers."""

from __future__ import annotations

from detokbench.records.schema import Record, Row
from detokbench.report.measure_c_rows import Rows, label
from detokbench.report.units import US, count, duration, microseconds, significant, times

ASSUMED_C_S = 10 * US
"""The chapter's working assumption for one round trip, made to be replaced by a measurement."""
FRONT_END_S = 27 * US
"""CPU a token of vLLM 0.33's whole Python front end at 128 streams (given, not measured here)."""


def read_measure_c(record: Record) -> list[str]:
    """Two to four sentences; one for each thing that the record can tell."""
    rows = Rows(record)
    sentences = [
        _cheapest(rows),
        _assumption(rows),
        _batch_against_rows(rows),
        _first_tokens(rows),
    ]
    return [sentence for sentence in sentences if sentence]


def _cheapest(rows: Rows) -> str | None:
    batch = rows.main_batch
    if batch is None:
        return None
    costs = {
        pair: row
        for pair in rows.right_paths()
        if (row := rows.get(pair[0], "per_token", batch, pair[1])) and row.median
    }
    if not costs:
        return None
    best = min(costs, key=lambda pair: costs[pair].median or 0)
    cost = costs[best]
    sentence = (
        f"{label(*best)} is the cheapest path with the right text: {_us(cost)} µs a token at "
        f"B = {batch}"
    )
    fast = costs.get(("fast", None))
    if fast is None or fast is cost or fast.median is None or cost.median is None:
        return sentence + "."
    saved = fast.median - cost.median
    return (
        f"{sentence}, {times(fast.median / cost.median)} cheaper than fast. It saves "
        f"{microseconds(saved)} µs, which is {significant(100 * saved / FRONT_END_S, 2)} % of a "
        f"whole front end of {FRONT_END_S / US:.0f} µs a token (vLLM's in Python, given)."
    )


def _assumption(rows: Rows) -> str | None:
    batch = rows.main_batch
    call = rows.get("fast", "call", batch) if batch is not None else None
    if call is None or not call.median:
        return None
    factor = ASSUMED_C_S / call.median
    how = f"{times(factor)} too high" if factor > 1 else f"{times(1 / factor)} too low"
    if 0.95 < factor < 1.05:
        how = "right"
    return f"One DecodeStream.step takes {_us(call)} µs: the 10 µs often assumed is {how} for it."


def _batch_against_rows(rows: Rows) -> str | None:
    if not rows.batches:
        return None
    batch = rows.batches[-1]
    batched = rows.get("batch-decode", "per_token", batch)
    by_row = rows.get("row-decode", "per_token", batch)
    if batched is None or by_row is None or not batched.median or not by_row.median:
        return None
    if not _apart(batched, by_row):
        return f"batch_decode against rows of decode: no difference could be told at B = {batch}."
    ratio = batched.median / by_row.median
    if rows.record.vocabulary["tokenizer"] != "Rust":
        return (
            f"On this Python tokenizer batch-decode is rows of decode too, each with its special "
            f"ids filtered out first: {times(ratio)} the cost of row-decode at B = {batch}."
        )
    versions = f"transformers {rows.record.packages.get('transformers', '?')}"
    if ratio > 1:
        return (
            f"batch_decode does not pay: it costs {times(ratio)} what rows of decode do at "
            f"B = {batch} ({versions})."
        )
    return f"batch_decode beats rows of decode by {times(1 / ratio)} at B = {batch} ({versions})."


def _first_tokens(rows: Rows) -> str | None:
    if not rows.prompt_lens:
        return None
    longest = rows.prompt_lens[-1]
    fast = rows.first_token_s("fast", longest)
    slow = rows.first_token_s("slow", longest)
    if slow is None:
        return None
    if fast is None:
        return f"A first token after {count(longest)} ids of prompt costs {duration(slow)} (slow)."
    return (
        f"A request's first token costs fast {duration(fast)} after a prompt of {count(longest)} "
        "ids, with the GIL held, since DecodeStream decodes the whole prompt; "
        f"slow {duration(slow)}."
    )


def _apart(a: Row, b: Row) -> bool:
    """Whether two intervals do not overlap; False where one is missing."""
    if a.ci_low is None or a.ci_high is None or b.ci_low is None or b.ci_high is None:
        return False
    return a.ci_high < b.ci_low or b.ci_high < a.ci_low


def _us(row: Row) -> str:
    assert row.median is not None
    return microseconds(row.median, row.ci_low, row.ci_high)
