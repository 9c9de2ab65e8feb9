"""What a ``frontend-parts`` record says, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from detokbench.records.frontend import CHUNKS_AT_LEAST
from detokbench.records.frontend_parts import ENOUGH, REQUESTS, PartsDetails, details_of
from detokbench.records.schema import Record
from detokbench.report.units import microseconds, milliseconds, percent

TITLES = {
    "wire": "receive a step, decode its message",
    "output": "output object and queue",
    "decode": "detokenizer",
    "stop": "a stop string, looked for",
    "statistics": "statistics",
    "hand-over": "hand-over to the stream's task",
    "json": "JSON of the event",
    "framework": "Starlette and middleware",
    "socket": "uvicorn and the socket",
    REQUESTS: "requests begun and ended",
    "loop": "event loop itself",
    "other": "other",
}
"""By the name of a part, in the order of tables."""


def read_parts(record: Record) -> list[str]:
    """Each follows from the record alone."""
    details = details_of(record)
    return [*_shares(details), *_requests(details), *_profile(details)]


def _shares(details: PartsDetails) -> Iterator[str]:
    for at in details.at:
        verdict = "at least" if at.share >= ENOUGH else "less than the wanted"
        yield (
            f"At {at.streams} streams and a step of {milliseconds(details.t_step_s)} ms a token "
            f"costs {details.engine} {details.version}'s Python front end "
            f"{microseconds(at.whole_s)} µs of CPU; its parts, each measured on top of the others, "
            f"come to {microseconds(at.sum_s)} µs, {percent(at.share)} % of it: {verdict} "
            f"{percent(ENOUGH)} %."
        )


def _requests(details: PartsDetails) -> Iterator[str]:
    for at in details.at:
        per_token = details.requests_s(at)
        if per_token <= 0:
            yield (
                f"What a request costs besides its tokens is lost in the noise at {at.streams} "
                "streams."
            )
            continue
        yield (
            f"A request costs {milliseconds(details.request_s(at))} ms besides its tokens at "
            f"{at.streams} streams, {microseconds(per_token)} µs for each of {details.max_tokens} "
            f"({percent(per_token / at.whole_s)} % of the whole; by requests of "
            f"{details.max_tokens} and {details.long_tokens:,} ids)."
        )


def _profile(details: PartsDetails) -> Iterator[str]:
    if not details.profile:
        return
    streams = max(at.streams for at in details.at)
    outside = [p for p in details.profile if p.name in {REQUESTS, "loop", "other"}]
    named = ", ".join(f"{TITLES[part.name]} {percent(part.share)} %" for part in outside)
    inside = 1 - sum(part.share for part in outside)
    yield (
        f"By the profile at {streams} streams ({details.profile_samples:,} samples) the parts are "
        f"{percent(inside)} % of the whole; the rest: {named}."
    )
    largest = details.profile[0]
    yield (
        f"The most is in {TITLES[largest.name]}, {percent(largest.share)} %: "
        f"{largest.frames[0][0]} alone {percent(largest.frames[0][1])} %."
    )
    if details.parser == "h11":
        yield (
            "uvicorn writes HTTP with h11 here, in Python; with httptools installed, as vLLM's own "
            "dependencies have it, the socket's part is smaller."
        )


def warnings_of(record: Record) -> list[str]:
    """The record's own, and where tokens came together."""
    details = details_of(record)
    merged = details.chunks_per_token
    if merged >= CHUNKS_AT_LEAST:
        return list(record.warnings)
    return [
        *record.warnings,
        f"in some run only {merged:.2f} chunks a token came: the machine was too busy or the pace "
        "too fast, and what tokens share costs less each",
    ]
