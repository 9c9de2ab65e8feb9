"""A traced stream: pure data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from detokbench.paths.view import RowView
from detokbench.stops.request import StopFinish
from detokbench.trace.compare import Comparison
from detokbench.verify.stream import Stream

Outcome = Literal["commit", "part", "hold", "–", "wait", "stop", "end", "lost", "error"]
"""What a step came to.

``commit``: text came and nothing is held. ``part``: text came, something is held. ``hold``: no
text, something is held. ``–``: no text, nothing held. ``wait``: the ids wait in front of the path,
since they may begin a stop. ``stop``: a stop was found. Of the end of a stream: ``end``, or
``lost`` where something was held and none of it came. ``error``: the path raised.
"""
OPEN = "open"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step: what went in, what the path looked like before and after it, what came out.

    ``label`` is a number from 1, ``open`` or ``end``. ``pieces`` are the bytes of each id, None
    for one that is none; the whole is None where the vocabulary has no bytes to its ids. ``handed``
    are the ids that reached the path, which are others where ids wait in front of it for a stop.
    ``delta`` is what went out, ``stop_held`` what is kept back after it for a stop string.
    ``counted`` are the path's own counters that moved. ``before`` and ``after`` are None where the
    path shows nothing of itself, or is gone.
    """

    label: str
    outcome: Outcome
    ids: tuple[Any, ...] = ()
    pieces: tuple[bytes | None, ...] | None = ()
    before: RowView | None = None
    after: RowView | None = None
    delta: str = ""
    stop_held: str = ""
    counted: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    handed: tuple[Any, ...] = ()

    @property
    def window(self) -> Sequence[Any] | None:
        """What the path decodes in this step before what was handed to it; None for nothing."""
        if self.before is None or self.outcome == "wait":
            return None
        return self.before.window


@dataclass(frozen=True, slots=True)
class Trace:
    """A traced stream. ``comparison`` says what is right; the reason is given where none can be."""

    path: str
    whose: str
    vocabulary: str
    stream: Stream
    ids_per_step: int
    steps: list[TraceStep]
    finish: StopFinish | None
    comparison: Comparison | str
    warnings: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that came."""
        return "".join(step.delta for step in self.steps)

    @property
    def error(self) -> str:
        """What the path raised at the last step, if it did."""
        return self.steps[-1].error if self.steps else ""
