"""What only a ``fidelity`` record has: its ``details``."""

from __future__ import annotations

import msgspec

from detokbench.records.schema import Record
from detokbench.records.verify import StreamFacts


class TextDifference(msgspec.Struct, kw_only=True):
    """The smallest stream found that shows a difference; ``runs`` counts those that showed it."""

    known: str
    """The name of a known difference; empty for one that is not."""
    what: str
    """What differs first: the text of a step, of the end, an error, or the stop."""
    runs: int
    input: StreamFacts
    pieces: list[str]
    step: int
    ours: str
    theirs: str
    origin: str


class PairTexts(msgspec.Struct, kw_only=True):
    """The texts of one pair on one vocabulary. A run is one stream at one number of ids a step."""

    ours: str
    theirs: str
    vocab: str
    why_not: str = ""
    """Why nothing was compared."""
    streams: int = 0
    runs: int = 0
    steps: int = 0
    differing: int = 0
    """Runs that differ in what is not known."""
    known: dict[str, int] = {}
    """Runs that differ in a known way, by its name."""
    differences: list[TextDifference] = []


class PairCost(msgspec.Struct, kw_only=True):
    """What a token costs by ours over what it costs by theirs, within each process."""

    ours: str
    theirs: str
    vocab: str
    batch: int
    ours_s: float | None
    theirs_s: float | None
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    ratios: list[float]
    """One a process."""


class EngineFacts(msgspec.Struct, kw_only=True):
    """An engine that was compared with, and whether this version has been tried before."""

    name: str
    version: str
    tried: list[str]


class KnownFacts(msgspec.Struct, kw_only=True):
    """A known difference in words."""

    name: str
    says: str


class FidelityDetails(msgspec.Struct, kw_only=True):
    """All of it."""

    engines: list[EngineFacts]
    tolerance: tuple[float, float]
    texts: list[PairTexts]
    costs: list[PairCost]
    known: list[KnownFacts]
    fuzz: int
    seed: int


def fidelity_details(record: Record) -> FidelityDetails:
    """The typed details of a ``fidelity`` record. Raises msgspec.ValidationError for another's."""
    return msgspec.convert(record.details, FidelityDetails)
