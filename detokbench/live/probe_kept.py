"""What is kept of a request of the load once it is judged: its facts and figures, not its bytes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from detokbench.live.itl import Arrival
from detokbench.live.probe_checks import check_ids
from detokbench.live.probe_judge import Judged, facts_of
from detokbench.records.probe import CountedBy, IdCheck, RequestFacts
from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Kept:
    """16 bytes a chunk, and no text."""

    sent_s: float
    facts: RequestFacts
    """``started_s`` is that of ``perf_counter``."""
    is_measured: bool
    how: CountedBy
    ids: IdCheck | None
    _at_s: array[float]
    _tokens: array[float]

    @property
    def arrivals(self) -> list[Arrival]:
        """Its chunks."""
        return list(map(Arrival, self._at_s, self._tokens))


def keep(judged: Judged, vocabulary: Vocabulary | None, secrets: tuple[str, ...] = ()) -> Kept:
    """Check a request's ids, if there is something to check them by, and let its bytes go."""
    arrivals = judged.counted.arrivals
    return Kept(
        judged.raw.sent_s,
        facts_of(judged, 0.0),
        judged.is_measured,
        judged.counted.how,
        _id_check(judged, vocabulary, secrets),
        array("d", [arrival.at_s for arrival in arrivals]),
        array("d", [arrival.tokens for arrival in arrivals]),
    )


def _id_check(
    judged: Judged, vocabulary: Vocabulary | None, secrets: tuple[str, ...]
) -> IdCheck | None:
    if vocabulary is None or not judged.is_measured:
        return None
    try:
        return check_ids(judged, vocabulary, secrets)
    except UnsupportedFamilyError:
        return None
