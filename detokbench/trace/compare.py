"""What came of a stream against what its bytes say, and the step at which they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from detokbench.stops.request import StopFinish
from detokbench.verify.stream import Stream
from detokbench.verify.truth import Truth
from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.vocabulary import Vocabulary


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
    """The right text, the right end of a stream with stops, and where what came differs."""

    right: str
    finish: StopFinish | None
    difference: Difference | None


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
    if text == right or (goes_on and right.startswith(text)):
        return Comparison(right, finish, None)
    position = _common_length(text, right)
    if position < len(text):
        label = _sender(came, position)
    else:
        label = _giver(truth.lengths, position, ids_per_step)
    return Comparison(right, finish, Difference(label, position))


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
    return "end"
