"""What only a ``frontend`` record has: its ``details``. Times are in seconds.

A run keeps so many streams open against one front end, at one T_step of our engine, and is judged
within its window.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from detokbench.records.pipeline import Quantiles
from detokbench.records.schema import Record

RunOf = Literal["grid", "search", "variant"]
BoundBy = Literal["", "client", "engine"]
STRETCH_AT_MOST = 1.02
CHUNKS_AT_LEAST = 0.98
PLAIN = "completions"
"""The variant of all runs but those that show what one more feature costs."""


class RoleCpu(msgspec.Struct, kw_only=True):
    """CPU of one role in a window: seconds an id emitted, and the share of one core."""

    role: str
    s_per_token: float | None
    share: float


class FrontendRun(msgspec.Struct, kw_only=True):
    """One run. Figures of chunks are of the streams that were kept (``kept_share`` of all)."""

    engine: str
    of: RunOf
    variant: str
    streams: int
    t_step_s: float
    window_s: float
    steps: int
    late_steps: int
    worst_late_s: float
    steps_share: float
    """Steps that our engine did, over those that were due."""
    ids: int
    """Emitted within the window."""
    requests: int
    roles: list[RoleCpu]
    chunks_per_token: float | None
    events_per_token: float | None
    """All events of all streams through the whole run, those without text too, over its ids."""
    events_per_read: float | None
    """Above 1, events came together: their writes had merged on the way."""
    stretch: float | None
    stretch_streams: int
    itl: Quantiles
    lag: Quantiles
    ttft: Quantiles
    holds: bool
    why_not: str
    bound_by: BoundBy
    """Who else was at its limit, so that the front end's own is not known."""
    kept_share: float
    checked: int
    wrong: int
    first_difference: str

    @property
    def rate(self) -> float:
        """Tokens a second that were due."""
        return self.streams / self.t_step_s

    def cpu(self, role: str) -> float | None:
        """Seconds of CPU a token of a role; None where it has none."""
        return next((part.s_per_token for part in self.roles if part.role == role), None)

    def cpu_share(self, role: str) -> float:
        """The share of one core that a role used; 0 where there is none."""
        return next((part.share for part in self.roles if part.role == role), 0.0)


class FrontendLimit(msgspec.Struct, kw_only=True):
    """The shortest T_step that held for so many streams, and the longest that did not.

    ``is_bound``: clients, our engine or the shortest T_step tried set the limit, so that the
    front end's own may lie beyond it.
    """

    engine: str
    streams: int
    held_s: float | None
    broke_s: float | None
    is_bound: bool
    why: str
    """What the front end did beyond it."""

    @property
    def rate(self) -> float | None:
        """The highest rate that held, tokens a second."""
        return None if self.held_s is None else self.streams / self.held_s


class OpenEndSeen(msgspec.Struct, kw_only=True):
    """How a front end ends a stream inside a character: what came behind the whole text."""

    engine: str
    whole: str
    behind: str | None
    """None where the request failed; ``finish`` then says why."""
    finish: str


class FrontendAnswer(msgspec.Struct, kw_only=True):
    """B* of the whole front end against the roofline of a GPU, and how many a batch needs."""

    engine: str
    context: int
    answer: str
    batch: float | None
    is_bound: bool
    needed: dict[int, int | None]
    """Batch → front-end processes; None where no number of them will do."""


class FrontendEngine(msgspec.Struct, kw_only=True):
    """One front end as it was started."""

    name: str
    summary: str
    version: str
    ready_s: float
    left_out: list[str] = []
    """Variants that could not be run, each with the reason."""


class GpuCurve(msgspec.Struct, kw_only=True):
    """T_step on paper, at one context: seconds at batches."""

    context: int
    batches: list[int]
    seconds: list[float]
    largest_batch: int | None


class FrontendDetails(msgspec.Struct, kw_only=True):
    """All of it."""

    engines: list[FrontendEngine]
    front_ends: int
    streams: list[int]
    t_steps_s: list[float]
    max_tokens: int
    prompt_len: int
    is_ascii: bool
    stop: list[str]
    rule: str
    gpu: str
    shape: str
    curves: list[GpuCurve]
    runs: list[FrontendRun]
    limits: list[FrontendLimit]
    answers: list[FrontendAnswer]
    open_ends: list[OpenEndSeen]
    ended_by: str = ""
    """What ended it early; empty for a whole one."""


def details_of(record: Record) -> FrontendDetails:
    """The typed details of a ``frontend`` record. Raises msgspec.ValidationError for another's."""
    return msgspec.convert(record.details, FrontendDetails, strict=False)
