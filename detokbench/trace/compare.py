"""What came of a stream against what its bytes say, and the step at which they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from detokbench.stops.hold_metrics import HoldMetrics, hold_metrics
from detokbench.stops.request import StopFinish
from detokbench.verify.stream import Stream
from detokbench.verify.truth import Truth
from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.vocabulary import Vocabulary

END = "end"
"""The label of the end of a stream, which is a step after the last."""


@dataclass(frozen=True, slots=True)
class Difference:
    """From ``position`` on (characters) the texts differ.

    ``label`` names the step that sent the first wrong character, or, where something is missing
    at the end, the step whose bytes gave what is missing.
    """

    label: str
    position: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The right text, the right end of a stream with stops, and where what came differs.

    ``early`` is the first character that was sent while its bytes could still have become another,
    and the step that sent it; in the end it may have been right all the same. ``hold`` is what
    holding back for stops did to a reader, at one id a step.
    """

    right: str
    finish: StopFinish | None
    difference: Difference | None
    early: Difference | None = None
    hold: HoldMetrics | None = None


def compare(
    came: Sequence[tuple[str, str]], stream: Stream, ids_per_step: int, vocabulary: Vocabulary
) -> Comparison | str:
    """Compare with the bytes' own text; ``came`` has each step's label and text.

    Of a stream that is not ended less may have come than is certain: some paths hold more than
    others. The answer is a reason where the vocabulary has no bytes to its ids.
    """
    try:
        truth = Truth(stream, vocabulary)
    except UnsupportedFamilyError as error:
        return str(error)
    stopped = truth.stopped if stream.has_stops else None
    right = truth.text if stopped is None else stopped.text
    text = "".join(delta for _, delta in came)
    finish = None if stopped is None else stopped.finish
    goes_on = not stream.ended and finish is None
    early = None if stream.has_stops else _first_early(came, right, truth.lengths, ids_per_step)
    hold = _hold(came, truth, finish is not None) if stopped and ids_per_step == 1 else None
    if text == right or (goes_on and right.startswith(text)):
        return Comparison(right, finish, None, early, hold)
    position = _common_length(text, right)
    if position < len(text):
        label = _sender(came, position)
    else:
        label = _giver(truth.lengths, position, ids_per_step)
    return Comparison(right, finish, Difference(label, position), early, hold)


def _hold(came: Sequence[tuple[str, str]], truth: Truth, is_stopped: bool) -> HoldMetrics:
    """Of the steps before the stop or the end, which release what was held for other reasons."""
    deltas = [delta for label, delta in came if label != END]
    pieces = [truth.certain[begin:end] for begin, end in pairwise(truth.lengths)]
    return hold_metrics(pieces, deltas[:-1] if is_stopped else deltas)


def _first_early(
    came: Sequence[tuple[str, str]], right: str, lengths: Sequence[int], ids_per_step: int
) -> Difference | None:
    """Where, while all was right so far, a step sent more than was certain by its end."""
    sent = 0
    for number, (label, delta) in enumerate(came, 1):
        certain = lengths[min(number * ids_per_step, len(lengths) - 1)]
        agree = _common_length(delta, right[sent:])
        if label != END and sent + agree > certain:
            return Difference(label, certain)
        if agree < len(delta):
            return None
        sent += len(delta)
    return None


def _common_length(left: str, right: str) -> int:
    shorter = min(len(left), len(right))
    return next((i for i in range(shorter) if left[i] != right[i]), shorter)


def _sender(came: Sequence[tuple[str, str]], position: int) -> str:
    length = 0
    for label, delta in came:
        length += len(delta)
        if length > position:
            return label
    raise ValueError(f"no step sent character {position}")


def _giver(lengths: Sequence[int], position: int, ids_per_step: int) -> str:
    """The step that makes the character at ``position`` certain; the end for what it flushes."""
    for ids, length in enumerate(lengths):
        if length > position:
            return str(ceil(ids / ids_per_step))
    return END
