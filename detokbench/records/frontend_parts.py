"""What only a ``frontend-parts`` record has: its ``details``. Times are seconds of CPU a token."""

from __future__ import annotations

from statistics import median

import msgspec

from detokbench.records.schema import Record

ENOUGH = 0.7
"""The share of the whole from which on its parts count as known."""
REQUESTS = "requests"
"""What is measured on the whole server, not by a rung: requests begun and ended."""


class PartSeen(msgspec.Struct, kw_only=True):
    """One part in each round; a part is what a rung costs beyond the one that it stands on."""

    name: str
    rounds_s: list[float]
    in_sum: bool = True
    """False for a part that plain requests do not have: stop strings."""

    @property
    def s_per_token(self) -> float:
        return median(self.rounds_s)


class PartsAt(msgspec.Struct, kw_only=True):
    """The parts, and the real server at the same number of streams and pace.

    ``whole_rounds_s`` is with requests of ``max_tokens`` ids, ``long_rounds_s`` with those of
    ``long_tokens``: what a request costs by itself follows from the two.
    """

    streams: int
    parts: list[PartSeen]
    whole_rounds_s: list[float]
    long_rounds_s: list[float]

    @property
    def whole_s(self) -> float:
        return median(self.whole_rounds_s)

    @property
    def sum_rounds_s(self) -> list[float]:
        """What the parts come to in each round; that of ``stop`` is not among them."""
        return [
            sum(costs) for costs in zip(*(p.rounds_s for p in self.parts if p.in_sum), strict=True)
        ]

    @property
    def sum_s(self) -> float:
        return median(self.sum_rounds_s)

    @property
    def share(self) -> float:
        """The sum over the whole, round by round, so that both saw the same machine."""
        pairs = zip(self.sum_rounds_s, self.whole_rounds_s, strict=True)
        return median(parts / whole for parts, whole in pairs)


class ProfilePart(msgspec.Struct, kw_only=True):
    """A part's share of the CPU samples, and where most of them were: (frame, share)."""

    name: str
    share: float
    frames: list[tuple[str, float]]


class PartsDetails(msgspec.Struct, kw_only=True):
    """``parser``: uvicorn's, h11 (Python) or httptools; ``profile`` is at the most streams."""

    engine: str
    version: str
    loop: str
    parser: str
    t_step_s: float
    window_s: float
    max_tokens: int
    long_tokens: int
    at: list[PartsAt]
    profile: list[ProfilePart]
    profile_samples: int
    chunks_per_token: float
    """The fewest of all runs; below 1 tokens came together, which spares most of their work."""

    def request_s(self, at: PartsAt) -> float:
        """Seconds of CPU that a request costs beyond its tokens, begun and ended."""
        less = 1 / self.max_tokens - 1 / self.long_tokens
        pairs = zip(at.whole_rounds_s, at.long_rounds_s, strict=True)
        return median((short - long) / less for short, long in pairs)

    def requests_s(self, at: PartsAt) -> float:
        """The same for each token of a request of ``max_tokens`` ids."""
        return self.request_s(at) / self.max_tokens

    def profile_share(self, name: str) -> float | None:
        """A part's share of the profile; None where it has none."""
        return next((part.share for part in self.profile if part.name == name), None)


def details_of(record: Record) -> PartsDetails:
    """The details of a ``frontend-parts`` record. Raises msgspec.ValidationError."""
    return msgspec.convert(record.details, PartsDetails, strict=False)
