"""One stream through both: where what they send first differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from detokbench.stops.request import StopFinish
from detokbench.verify.stream import Observation

What = Literal["delta", "end", "error", "stop"]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first thing that two paths do not do alike in a stream.

    ``step`` counts from 0; the end of the stream is the step after the last.
    """

    what: What
    step: int
    ours: str
    theirs: str


def disagreement(ours: Observation, theirs: Observation) -> Disagreement | None:
    """What differs first; None where every delta, the end, the stop and any error are the same.

    Of errors the type is compared, and when they came; of a stop what matched, and the ids kept.
    """
    for step, (mine, its) in enumerate(zip_longest(ours.deltas, theirs.deltas)):
        if mine != its:
            return _in_step(step, mine, its, ours, theirs)
    last = len(ours.deltas)
    return next(_at_the_end(last, ours, theirs), None)


def _in_step(
    step: int, mine: str | None, its: str | None, ours: Observation, theirs: Observation
) -> Disagreement:
    if mine is not None and its is not None:
        return Disagreement("delta", step, mine, its)
    if _error_type(ours) != _error_type(theirs):
        return Disagreement("error", step, ours.error, theirs.error)
    return Disagreement("stop", step, _stop(ours.finish), _stop(theirs.finish))


def _at_the_end(last: int, ours: Observation, theirs: Observation) -> Iterator[Disagreement]:
    if _error_type(ours) != _error_type(theirs):
        yield Disagreement("error", last, ours.error, theirs.error)
    if ours.ending != theirs.ending:
        yield Disagreement("end", last, ours.ending, theirs.ending)
    if _stop(ours.finish) != _stop(theirs.finish):
        yield Disagreement("stop", last, _stop(ours.finish), _stop(theirs.finish))


def _error_type(seen: Observation) -> str:
    return seen.error.partition(":")[0]


def _stop(finish: StopFinish | None) -> str:
    return "none" if finish is None else f"{finish.matched!r} after {finish.kept_ids} ids"
