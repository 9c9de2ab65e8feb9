"""What a ``time-step`` record has beside its rows, as ``Record.details``.

Sizes are in bytes, rates in bytes and FLOP a second, of one GPU.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Point(msgspec.Struct, kw_only=True):
    """What is known of the row at the same place in ``Record.rows``.

    ``bound`` is what the roofline says; null where a device was timed. A point of the roofline
    that does not fit has a time all the same; a measured one has none.
    """

    bytes_read: float
    memory_needed_bytes: float
    fits: bool
    bound: Literal["memory", "compute"] | None = None
    spread: float | None = None
    share_of_copy: float | None = None
    share_of_sheet: float | None = None
    graph_error: float | None = None
    sm_clock_mhz: float | None = None
    note: str = ""


class ContextAnswer(msgspec.Struct, kw_only=True):
    """On the GPU's data sheet, for one context."""

    context: int
    ridge_batch: float | None
    """The batch from which compute outlasts memory; null for never."""
    largest_batch: int | None
    """The most sequences that fit beside the weights; null for no bound."""


class PublishedPoint(msgspec.Struct, kw_only=True):
    """A step that others measured, beside the roofline of the record's GPU at the same point.

    ``context`` is null where the source is silent; the roofline is then that without any.
    """

    t_step_s: float
    batch: int
    context: int | None
    engine: str
    scope: str
    source: str
    hardware: str | None
    roofline_s: float


class TimeStepDetails(msgspec.Struct, kw_only=True):
    """``gpu`` is the data sheet, null for a CPU; ``device`` is null where nothing was timed."""

    model: dict[str, Any]
    gpu: dict[str, Any] | None
    options: dict[str, Any]
    device: dict[str, Any] | None = None
    copy_bandwidth_bytes_s: float | None = None
    memory_bytes: float
    """Memory that a point has to fit into: of the data sheet, or on a CPU the limit set."""
    smallest_tp: int | None = None
    """The fewest GPUs that hold the weights, where one does not."""
    answers: list[ContextAnswer] = []
    published: list[PublishedPoint] = []
    points: list[Point] = []


def details_of(details: dict[str, Any]) -> TimeStepDetails:
    """The details of a record of this kind. Raises msgspec.ValidationError for another's."""
    return msgspec.convert(details, TimeStepDetails)
