"""The record of a probe, and the exit code that follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from statistics import fmean
from typing import Any, Literal

import msgspec

from detokbench import __version__
from detokbench.bench.machine import disturbances, package_versions
from detokbench.bench.run import Outcome
from detokbench.bench.statistics import summarize
from detokbench.errors import ExitCode
from detokbench.live.itl import (
    TokenGap,
    chunk_gaps,
    filled_gaps,
    mean_itl_s,
    token_gaps,
    token_percentile,
)
from detokbench.live.metrics_page import server_load
from detokbench.live.probe_checks import check_ids
from detokbench.live.probe_fetch import MOST_OPEN_BYTES
from detokbench.live.probe_judge import Judged, facts_of
from detokbench.live.probe_load import BOUND_SHARE
from detokbench.live.probe_run import Asked, Collected
from detokbench.model.latency import percentile
from detokbench.records.probe import (
    DEFINITIONS,
    MEASURED,
    OUTCOME_SAYS,
    ClientFacts,
    CountedBy,
    Distribution,
    IdCheck,
    OutcomeCount,
    ProbeDetails,
    RequestFacts,
    probe_details,
)
from detokbench.records.provenance import file_name
from detokbench.records.schema import Record, Row
from detokbench.vocab.id_bytes import UnsupportedFamilyError

_MOST_POINTS = 400


class ProbeOutcome(Outcome):
    """A record whose exit code follows from how the requests ended."""

    def exit_code(self) -> ExitCode:
        """1 where a request did not end well."""
        code = super().exit_code()
        counts = probe_details(self.record).outcomes
        failed = any(count.outcome not in MEASURED for count in counts)
        return ExitCode.FAILED_CHECK if failed else code


def record_of(asked: Asked, collected: Collected, created: str, command: list[str]) -> ProbeOutcome:
    """Everything about one run."""
    details = _details(asked, collected)
    facts = collected.machine
    warnings = [*collected.warnings, *disturbances(facts), *_warnings(details)]
    record = Record(
        kind="probe",
        created=created,
        command=command,
        detokbench=__version__,
        partial=collected.error is not None,
        scenario={"name": ", ".join(dict.fromkeys(prompt.name for prompt in asked.prompts))},
        vocabulary={} if asked.vocabulary is None else asked.vocabulary.facts,
        settings=_settings(asked),
        machine=facts,
        packages={**package_versions(), "aiohttp": version("aiohttp")},
        warnings=warnings,
        rows=_rows(asked, details.requests),
        details=msgspec.to_builtins(details),
    )
    return ProbeOutcome(record, collected.error)


def _settings(asked: Asked) -> dict[str, Any]:
    return {
        "concurrency": asked.concurrency,
        "requests": asked.requests,
        "max_tokens": asked.max_tokens,
        "temperature": 0,
        "seed": asked.seed,
        "timeout_s": asked.limits.seconds,
        "stream_limit_bytes": asked.limits.stream_bytes,
        "line_limit_bytes": asked.limits.line_bytes,
        "open_streams_limit_bytes": MOST_OPEN_BYTES,
        "gc": False,
        "client_bound_above": BOUND_SHARE,
    }


def _details(asked: Asked, collected: Collected) -> ProbeDetails:
    judged = collected.load.judged
    first_s = min((entry.raw.sent_s for entry in judged), default=0.0)
    requests = [facts_of(entry, first_s) for entry in judged]
    measured = [entry for entry in judged if entry.is_measured]
    gaps = [gap for entry in measured for gap in token_gaps(entry.counted.arrivals)]
    points = collected.looks.points
    ids, note = _id_check(asked, measured)
    collected.warnings += note
    return ProbeDetails(
        server=asked.server.origin,
        api=asked.api,
        model=None if collected.dialect.model is None else file_name(collected.dialect.model),
        definitions=DEFINITIONS,
        fields_taken=collected.dialect.taken,
        fields_refused=collected.dialect.refused,
        outcomes=_outcomes(requests),
        requests=requests,
        ttft=_distribution([s for entry in measured if (s := entry.ttft_s) is not None]),
        chunk_gap=_distribution(_all_gaps(measured, chunk_gaps)),
        filled_gap=_distribution(_all_gaps(measured, filled_gaps)),
        itl=_of_tokens(gaps, spread="usage-total" in {e.counted.how for e in measured}),
        counted_by=_main_way(measured),
        counts_disagree=sum(len(set(entry.counted.totals.values())) > 1 for entry in measured),
        server_load=server_load(collected.looks.engine, points) if len(points) > 1 else None,
        hold_back=collected.hold,
        comparisons=collected.comparisons,
        not_compared=max(0, len(asked.prompts) - len(collected.comparisons))
        if asked.compares
        else 0,
        ids=ids,
        client=collected.load.client
        or ClientFacts(cpu_share=0.0, is_bound=False, wall_s=0.0, parsed_late=True),
    )


def _id_check(asked: Asked, measured: Sequence[Judged]) -> tuple[IdCheck | None, list[str]]:
    if asked.vocabulary is None:
        return None, []
    try:
        return check_ids(measured, asked.vocabulary), []
    except UnsupportedFamilyError as error:
        return None, [f"ids are not checked against the text: {error}"]


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


def _main_way(measured: Sequence[Judged]) -> CountedBy:
    ways = Counter(entry.counted.how for entry in measured)
    return ways.most_common(1)[0][0] if ways else "none"


def _all_gaps(
    measured: Sequence[Judged], gaps: Callable[[Sequence[Any]], list[float]]
) -> list[float]:
    return [gap for entry in measured for gap in gaps(entry.counted.arrivals)]


def _distribution(values: Sequence[float]) -> Distribution:
    return Distribution(
        samples=len(values),
        mean_s=fmean(values) if values else None,
        p50_s=percentile(values, 50),
        p90_s=percentile(values, 90),
        p99_s=percentile(values, 99),
        max_s=max(values, default=None),
        points=_thinned(sorted(values)),
    )


def _of_tokens(gaps: Sequence[TokenGap], spread: bool) -> Distribution:
    """ITL per token; where tokens were spread evenly there is nothing but a mean."""
    points: list[float] = []
    if not spread:
        points = [gap.itl_s for gap in sorted(gaps) for _ in range(round(gap.tokens))]
    return Distribution(
        samples=len(gaps),
        mean_s=mean_itl_s(gaps),
        p50_s=None if spread else token_percentile(gaps, 50),
        p90_s=None if spread else token_percentile(gaps, 90),
        p99_s=None if spread else token_percentile(gaps, 99),
        max_s=None if spread else max((gap.itl_s for gap in gaps), default=None),
        points=_thinned(points),
    )


def _thinned(values: list[float]) -> list[float]:
    """At most a few hundred of the sorted values, evenly picked, first and last among them."""
    if len(values) <= _MOST_POINTS:
        return values
    last = len(values) - 1
    return [values[round(pick * last / (_MOST_POINTS - 1))] for pick in range(_MOST_POINTS)]


def _rows(asked: Asked, requests: Sequence[RequestFacts]) -> list[Row]:
    """One row a figure: its mean in each measured request, and the median over requests."""
    measured = [facts for facts in requests if facts.outcome in MEASURED]
    figures: list[tuple[Literal["ttft", "chunk_gap", "itl"], list[float | None]]] = [
        ("ttft", [facts.ttft_s for facts in measured]),
        ("chunk_gap", [facts.chunk_gap_s for facts in measured]),
        ("itl", [facts.itl_s for facts in measured]),
    ]
    return [_row(asked, metric, samples) for metric, samples in figures]


def _row(
    asked: Asked, metric: Literal["ttft", "chunk_gap", "itl"], samples: list[float | None]
) -> Row:
    values = [value for value in samples if value is not None]
    summary = summarize(values) if values else None
    return Row(
        path="server",
        batch=asked.concurrency,
        metric=metric,
        median=None if summary is None else summary.median,
        ci_low=None if summary is None else summary.ci_low,
        ci_high=None if summary is None else summary.ci_high,
        mad=None if summary is None else summary.mad,
        samples=samples,
        vocab="" if asked.vocabulary is None else asked.vocabulary.name,
    )


def _warnings(details: ProbeDetails) -> list[str]:
    warnings = []
    if details.client.is_bound:
        warnings.append(
            f"client-bound: this process used {details.client.cpu_share:.0%} of a core, so the "
            "gaps may be its own; lower --concurrency, or run several probes"
        )
    if not details.client.parsed_late:
        warnings.append("some streams were parsed while others came: their gaps may be longer")
    if details.counts_disagree:
        warnings.append(
            f"{details.counts_disagree} requests have other totals of tokens by another count"
        )
    if any(facts.cumulative for facts in details.requests):
        warnings.append("cumulative: chunks repeat all that came before; read as deltas here")
    return warnings
