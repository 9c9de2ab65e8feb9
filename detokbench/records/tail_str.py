"""What only a ``tail-str`` record has: its ``details``. Times are in seconds, medians of processes.

Everything but the counts is modelled from the record's measured rows; ``t_step.source`` says
where T_step comes from.
"""

from __future__ import annotations

import msgspec

from detokbench.records.schema import Record, Source


class StopFacts(msgspec.Struct, kw_only=True):
    """One set of stops, and what is seen of it in the streams at the main setting.

    ``window`` is in tokens, None for the whole output. ``hold_back_*`` is vLLM's fixed hold-back,
    which is nothing where the stop is kept in the output; the rest is SGLang's suppression.
    ``chunks`` is None where nothing is checked.
    """

    name: str
    strings: list[str]
    regexes: list[str]
    tokens: int | None
    window: int | None
    hold_back_chars: int
    hold_back_s: float
    chunks: int | None = None
    suppressed: int = 0
    longest_steps: int = 0
    longest_chars: int = 0
    longest_s: float = 0.0
    cut_streams: int = 0


class Setting(msgspec.Struct, kw_only=True):
    """One set of stops at one number of ids a step and one stream interval.

    The parts are seconds a request and step, each times how often it happens, so that they add up
    to ``modelled_s``. ``error`` is modelled over measured less one: its median over processes, and
    the largest either way.
    """

    stop: str
    ids_per_step: int
    stream_interval: int | None
    """None for requests that do not stream."""
    is_given: bool
    """False where it is measured for the growth over lengths only."""
    decodes: float
    """Decodes a request and step, counted in the streams."""
    decodes_floor: float
    finish_decode_s: float
    contain_s: float
    prefix_decode_s: float
    prefix_scan_s: float
    modelled_s: float
    measured_s: float
    measured_low_s: float | None
    measured_high_s: float | None
    error: float
    error_worst: float
    crossover: str
    """The batch above which the scheduler sets the pace, in words."""
    crossover_batch: float | None
    crossover_why: str


class BatchPoint(msgspec.Struct, kw_only=True):
    """A step of one batch with one set of stops, at the main setting."""

    stop: str
    batch: int
    scheduler_s: float
    t_step_s: float
    step_overlap_s: float
    step_added_s: float
    share: float
    """Scheduler time over T_step."""
    fits: bool


class GrowthPoint(msgspec.Struct, kw_only=True):
    """One prefix scan of a stop of so many tokens and characters, and both checks around it.

    ``scanned_chars`` is what the scan goes through on average: an output that has just begun is
    shorter than the stop.
    """

    tokens: int
    chars: int
    scanned_chars: float
    contain_s: float
    decode_s: float
    prefix_scan_s: float
    both_s: float


class Growth(msgspec.Struct, kw_only=True):
    """Cost over the length of a stop.

    ``power`` is that of the scan's time over the characters scanned, ``power_copied`` that of the
    characters it copies, ``power_at_end`` that of the time between the two longest. ``fixed_s``,
    ``per_char_s`` and ``per_square_s`` are the scan's time in parts; the square one outweighs the
    straight one from ``overtaking_chars`` on (None: no square part can be told).
    """

    points: list[GrowthPoint]
    power: float
    power_at_end: float | None
    power_copied: float
    fixed_s: float
    per_char_s: float
    per_square_s: float
    overtaking_chars: float | None


class TStepFacts(msgspec.Struct, kw_only=True):
    """Where T_step comes from, and at which batch hold-backs are turned into time."""

    source: Source
    gpu: str | None = None
    model: str | None = None
    context: int | None = None
    largest_batch: int | None = None
    """What memory holds; None where nothing is known to limit it."""
    reference_batch: int
    reference_s: float


class AssumedPoint(msgspec.Struct, kw_only=True):
    batch: int
    calls: int
    scheduler_s: float


class Assumed(msgspec.Struct, kw_only=True):
    """The chapter's own figure: up to two calls a request and step, at a given cost of a call."""

    call_s: float
    points: list[AssumedPoint]
    crossover: str | None
    """B* against a T_step that is given as well; None where T_step has another source."""


class TailStrDetails(msgspec.Struct, kw_only=True):
    """All of it. The main setting is the first one asked for."""

    streaming: bool
    overlap: bool
    streams: int
    chars_per_id: float
    ids_per_step: int
    stream_interval: int | None
    t_step: TStepFacts
    stops: list[StopFacts]
    settings: list[Setting]
    batches: list[BatchPoint]
    growth: Growth | None = None
    assumed: Assumed | None = None


def details_of(record: Record) -> TailStrDetails:
    """The typed details of a ``tail-str`` record. Raises msgspec.ValidationError for another's."""
    return msgspec.convert(record.details, TailStrDetails)
