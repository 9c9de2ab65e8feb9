"""All requests of a probe together: how they ended, their figures, and what the checks found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from detokbench.live.itl import Arrival, chunk_gaps, filled_gaps, token_gaps
from detokbench.live.metrics_page import server_load
from detokbench.live.probe_asked import Asked
from detokbench.live.probe_distributions import distribution, token_distribution
from detokbench.live.probe_kept import Kept
from detokbench.live.probe_run import Collected
from detokbench.live.probe_secrets import blot_details, blotted
from detokbench.records.probe import (
    DEFINITIONS,
    OUTCOME_SAYS,
    ClientFacts,
    CountedBy,
    Distribution,
    IdCheck,
    OutcomeCount,
    ProbeDetails,
    RequestFacts,
)
from detokbench.records.provenance import file_name

_NO_CLIENT = ClientFacts(cpu_share=0.0, is_bound=False, wall_s=0.0, parsed_late=True)


def make_details(asked: Asked, collected: Collected, ids: IdCheck | None) -> ProbeDetails:
    """The details of the record; ``ids`` is what comparing ids with the text has found."""
    load, dialect, points = collected.load, collected.dialect, collected.looks.points
    first_s = min((entry.sent_s for entry in load.judged), default=0.0)
    requests = [
        replace(entry.facts, started_s=entry.facts.started_s - first_s) for entry in load.judged
    ]
    measured = [entry for entry in load.judged if entry.is_measured]
    left_out = len(asked.prompts) - len(collected.comparisons) if asked.compares else 0
    details = ProbeDetails(
        server=asked.server.origin,
        api=asked.api,
        model=_model_of(asked, dialect.model),
        definitions=DEFINITIONS,
        fields_taken=dialect.taken,
        fields_refused=dialect.refused,
        outcomes=_outcomes(requests),
        requests=requests,
        ttft=distribution([s for entry in measured if (s := entry.facts.ttft_s) is not None]),
        chunk_gap=_of_gaps(measured, chunk_gaps),
        filled_gap=_of_gaps(measured, filled_gaps),
        itl=_of_tokens(measured),
        counted_by=_main_way(measured),
        counts_disagree=sum(len(set(entry.facts.totals.values())) > 1 for entry in measured),
        server_load=server_load(collected.looks.engine, points) if len(points) > 1 else None,
        hold_back=collected.hold,
        comparisons=collected.comparisons,
        not_compared=max(0, left_out),
        ids=ids,
        client=load.client or _NO_CLIENT,
    )
    blot_details(details, asked.secrets)
    return details


def _model_of(asked: Asked, model: str | None) -> str | None:
    """The model's name, without a folder; one that the server gave, without a secret."""
    if model is None:
        return None
    return file_name(model if asked.model is not None else blotted(model, asked.secrets))


def _outcomes(requests: Sequence[RequestFacts]) -> list[OutcomeCount]:
    """How many ended in each way, in the order of the list of ways."""
    counted = Counter(facts.outcome for facts in requests)
    return [
        OutcomeCount(
            outcome=outcome,
            says=says,
            requests=counted[outcome],
            note=next((f.note for f in requests if f.outcome == outcome and f.note), ""),
        )
        for outcome, says in OUTCOME_SAYS.items()
        if counted[outcome]
    ]


def _of_gaps(
    measured: Sequence[Kept], gaps: Callable[[Sequence[Arrival]], list[float]]
) -> Distribution:
    return distribution([gap for entry in measured for gap in gaps(entry.arrivals)])


def _of_tokens(measured: Sequence[Kept]) -> Distribution:
    gaps = [gap for entry in measured for gap in token_gaps(entry.arrivals)]
    return token_distribution(gaps, spread=any(e.how == "usage-total" for e in measured))


def _main_way(measured: Sequence[Kept]) -> CountedBy:
    ways = Counter(entry.how for entry in measured)
    return ways.most_common(1)[0][0] if ways else "none"
