"""What only an ``encode`` record has: its ``details``. Times in seconds, but for lists of samples.

Costs of calls are rows, medians of processes. The rest was measured on event loops of one fresh
process, in wall time; ``modelled_*`` is worked out from rows of the same record.
"""

from __future__ import annotations

import msgspec

from detokbench.records.schema import Record


class PromptFacts(msgspec.Struct, kw_only=True):
    """The texts of one nominal length: how many, and the ids that they encode to."""

    length: int
    texts: int
    mean_ids: float
    mean_chars: float


class GilFact(msgspec.Struct, kw_only=True):
    """One call in a thread: how long it took, and how long the others could not run meanwhile."""

    call: str
    length: int
    call_s: float
    blocked_s: float


MOST_ARRIVALS = 100_000
"""In one stream: with more, the loop's own work for them would be what is measured."""


def patience_s(duration_s: float) -> float:
    """How long after the last arrival of a stream its requests are given up."""
    return min(duration_s, 5.0)


class ArrivalCell(msgspec.Struct, kw_only=True):
    """A stream of arrivals, encoded in one way. Waits last from arrival until the ids are there.

    ``load`` is the share of one thread's time that the offered rate would take, by the row of
    ``tokenizer(text)``. ``unfinished`` requests were given up; their waits are in no figure.
    """

    way: str
    length: int
    rate: float
    load: float | None
    offered: int
    unfinished: int
    seconds: float
    throughput: float
    """Requests finished a second."""
    median_s: float | None
    p99_s: float | None
    worst_s: float | None
    blocked_s: float
    """Longest time the loop was blocked; an idle one shows ``idle_blocked_s``."""
    calls: int
    mean_batch: float
    cpu_s: float
    waits_us: list[int]
    """In the order of arrival."""


class StallCell(msgspec.Struct, kw_only=True):
    """Running streams while prompts of one length are admitted, by one path.

    Gaps are those between two tokens of a stream, the same in all of them. ``admit_s``,
    ``first_token_s`` and ``blocked_s`` (their sum) are medians over the admissions.
    """

    path: str
    length: int
    admissions: int
    step_s: float
    median_s: float | None
    p99_s: float | None
    worst_s: float | None
    admit_s: float
    first_token_s: float
    blocked_s: float
    blocked_worst_s: float
    blocked_cpu_s: float
    """CPU of the loop's thread in it, an ordinary step included: less where others had the CPU."""
    modelled_blocked_s: float | None
    modelled_worst_s: float | None
    gaps_us: list[int]


class EncodeDetails(msgspec.Struct, kw_only=True):
    """All of it. ``threads`` are those that the crate takes for a list of prompts."""

    lengths: list[int]
    batches: list[int]
    threads: int
    most_ids_a_call: int
    """Batches of more ids were left out."""
    duration_s: float
    max_batch: int
    wait_s: float
    t_step_s: float
    streams: int
    admit_every: int
    prompts: list[PromptFacts]
    idle_blocked_s: float | None = None
    gil: list[GilFact] = []
    arrivals: list[ArrivalCell] = []
    stalls: list[StallCell] = []


def details_of(record: Record) -> EncodeDetails:
    """The typed details of an ``encode`` record. Raises msgspec.ValidationError for another's."""
    return msgspec.convert(record.details, EncodeDetails)
