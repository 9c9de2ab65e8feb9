"""Differences between our paths and the engines' classes that are known, and why they are left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from detokbench.fidelity.compare import Disagreement
from detokbench.verify.stream import Observation, Stream
from detokbench.vocab.vocabulary import Vocabulary

_SGLANG = frozenset({"sglang", "sglang-rows"})


@dataclass(frozen=True)
class Outcome:
    """One stream through both, and what they first differ in."""

    stream: Stream
    vocabulary: Vocabulary
    ours: Observation
    theirs: Observation
    first: Disagreement


@dataclass(frozen=True)
class Known:
    """A known difference: the engine's paths that show it, and how it is told."""

    name: str
    says: str
    theirs: frozenset[str]
    is_it: Callable[[Outcome], bool]


def _ends_at_what_is_no_id(outcome: Outcome) -> bool:
    """Scheduler's part: only with stops is one asked."""
    stream, size = outcome.stream, outcome.vocabulary.size
    ids = stream.output
    return stream.has_stops and not all(type(i) is int and 0 <= i < size for i in ids)


def _last_chunk_twice(outcome: Outcome) -> bool:
    """Ours sends again, in the last chunk alone, a printable part that was out already."""
    first, theirs = outcome.first, outcome.theirs
    sent = "".join(theirs.deltas[: first.step])
    is_last = first.what == "end" or first.step == len(theirs.deltas) - 1
    again = first.ours.removesuffix(first.theirs)
    return (
        outcome.stream.has_stops
        and is_last
        and again != first.ours
        and bool(again)
        and sent.endswith(again)
    )


KNOWN = (
    Known(
        "no id",
        "SGLang's scheduler ends a request with stops at an id outside the vocabulary, or cannot "
        "hold what is no number; our stops look for stops alone",
        _SGLANG,
        _ends_at_what_is_no_id,
    ),
    Known(
        "last chunk",
        "SGLang decodes the ids that come with a request's end in one message; ours are a step and "
        "an end, and a printable part that shrinks between them goes out twice",
        _SGLANG,
        _last_chunk_twice,
    ),
)


def known_as(theirs: str, outcome: Outcome) -> str:
    """The name of the known difference that a stream shows; empty for one that is not known."""
    for known in KNOWN:
        if theirs in known.theirs and known.is_it(outcome):
            return known.name
    return ""
