"""What only a ``probe`` record has: its ``details``. Times are in seconds.

Two probes have one shape, whatever their servers gave: what a server does not give is null.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from detokbench.records.schema import Record

RequestOutcome = Literal[
    "ok",
    "no-done",
    "http-error",
    "error-frame",
    "bad-content-type",
    "bad-json",
    "too-long-line",
    "cut-off",
    "endless",
    "timeout",
    "empty",
    "refused",
    "bad-http",
]
MEASURED: tuple[RequestOutcome, ...] = ("ok", "no-done")
"""Outcomes of streams that came whole, which alone enter the figures."""
OUTCOME_SAYS: dict[RequestOutcome, str] = {
    "ok": "a whole stream, ended by [DONE]",
    "no-done": "a whole stream without [DONE]; measured like the others",
    "http-error": "another status than 200",
    "error-frame": "an error within the stream",
    "bad-content-type": "an answer that is no event stream",
    "bad-json": "a frame that is no JSON, or no frame of this interface",
    "too-long-line": "a line beyond the limit; reading ended there",
    "cut-off": "closed before the stream had ended",
    "endless": "still sending at the limit of time or of bytes; reading ended there",
    "timeout": "silent at the end of its time",
    "empty": "an end without any text",
    "refused": "no connection",
    "bad-http": "an answer that is no HTTP",
}
CountedBy = Literal["ids", "usage", "logprobs", "tokenizer", "usage-total", "none"]
COUNTED_SAYS: dict[CountedBy, str] = {
    "ids": "the ids in each chunk",
    "usage": "the server's running usage in each chunk",
    "logprobs": "the log-probabilities in each chunk, one a token",
    "tokenizer": "the whole text through the tokenizer, scaled to the server's total if known",
    "usage-total": "the server's total, spread evenly over the chunks with text: a mean only",
    "none": "nothing: the server gives no count; --tokenizer or --logprobs would",
}
DEFINITIONS = {
    "TTFT": "from sending a request, connecting included, to its first chunk with text",
    "inter-chunk gap": "between one chunk and the next of a stream, empty ones included",
    "gap, chunks with tokens": "between one chunk with tokens and the next",
    "ITL per token": "a gap, chunks with tokens, spread over the tokens of the chunk that ends it",
}
"""What each figure is, as the screen and the record say it."""


class Distribution(msgspec.Struct, kw_only=True):
    """One figure over all measured requests. A percentile below its sample floor is null."""

    samples: int
    """Gaps, or requests for TTFT."""
    mean_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    max_s: float | None
    points: list[float] = []
    """The sorted samples, thinned evenly to a few hundred, for charts; ITL by token."""


class RequestFacts(msgspec.Struct, kw_only=True):
    """One request of the load."""

    prompt: str
    outcome: RequestOutcome
    note: str = ""
    """What happened, in the server's words where it said something."""
    status: int | None = None
    started_s: float
    """Since the first request was sent."""
    seconds: float
    read_bytes: int = 0
    ttft_s: float | None = None
    chunks: int = 0
    empty_chunks: int = 0
    replacement_chunks: int = 0
    """Chunks with U+FFFD in their text."""
    other_frames: int = 0
    """Role, final and usage frames."""
    characters: int = 0
    cumulative: bool = False
    tokens: int | None = None
    counted_by: CountedBy = "none"
    totals: dict[str, int] = {}
    """Tokens of the whole answer, by each way in which they could be counted."""
    chunk_gap_s: float | None = None
    itl_s: float | None = None
    finish_reason: str | None = None


class OutcomeCount(msgspec.Struct, kw_only=True):
    """How many requests of the load ended in one way."""

    outcome: RequestOutcome
    says: str
    requests: int
    note: str = ""
    """The note of the first of them."""


class LoadPoint(msgspec.Struct, kw_only=True):
    """What ``/metrics`` said at one moment; null what it does not have."""

    at_s: float
    running: float | None = None
    waiting: float | None = None
    tokens: float | None = None
    """Tokens generated since the server started."""
    itl_sum_s: float | None = None
    itl_count: float | None = None
    tokens_per_s: float | None = None
    """As the server itself reports it."""


class ServerLoad(msgspec.Struct, kw_only=True):
    """The server's own account of the time of the load."""

    engine: str
    before: LoadPoint
    during: list[LoadPoint]
    after: LoadPoint
    most_running: float | None
    tokens_per_s: float | None
    """Tokens that it generated over the time of the load, others' requests included."""
    itl_s: float | None
    """Mean ITL by its own histogram over the time of the load."""


class HoldBack(msgspec.Struct, kw_only=True):
    """Text with stop strings against the same request without, at the same place in the text."""

    stop: list[str]
    prompt: str
    repeats: int
    characters: int
    """Characters that both texts begin with in common, over which they were compared."""
    later_s: float | None
    """Median over places: how much later the text came with the stops."""
    end_later_s: float | None
    """How much later the stream ended with them: the model was slower, no text was held."""
    held_s: float | None
    """What is left of the first without the second: the hold-back."""
    most_held_s: float | None
    behind: float | None
    """Median over arrivals: characters held back, both streams laid so that they end together."""
    most_behind: int | None
    noise_s: float | None
    """``later_s`` between runs that all had no stops: what is smaller is no finding."""
    note: str = ""


class Comparison(msgspec.Struct, kw_only=True):
    """The streamed text of a prompt against the answer that is not streamed."""

    prompt: str
    verdict: Literal["same", "differs", "not-repeatable", "failed"]
    at: int | None = None
    """The first character that differs."""
    streamed: str = ""
    whole: str = ""
    """Both texts around that place."""
    note: str = ""


class IdCheck(msgspec.Struct, kw_only=True):
    """The text of the ids that came, by the table of bytes, against the text that came."""

    tokenizer: str
    requests: int
    same: int
    unknown_ids: int
    """Ids that the vocabulary does not have: another tokenizer, or a wrong model."""
    prompt: str = ""
    """Of the first request that differs."""
    at: int | None = None
    expected: str = ""
    got: str = ""


class ClientFacts(msgspec.Struct, kw_only=True):
    """What the measuring itself cost, over the load."""

    cpu_share: float
    """Of one core."""
    is_bound: bool
    wall_s: float
    parsed_late: bool
    """Whether all streams were parsed after the last had ended."""
    gc: bool = False


class ProbeDetails(msgspec.Struct, kw_only=True):
    """The details of a ``probe`` record."""

    server: str
    """Scheme, host and port."""
    api: Literal["completions", "chat"]
    model: str | None
    definitions: dict[str, str]
    fields_taken: list[str]
    """Optional fields of a request that the server accepts."""
    fields_refused: list[str]
    outcomes: list[OutcomeCount]
    requests: list[RequestFacts]
    ttft: Distribution
    chunk_gap: Distribution
    filled_gap: Distribution
    itl: Distribution
    counted_by: CountedBy
    """How the tokens of most requests were counted."""
    counts_disagree: int
    """Requests whose totals by two ways differ."""
    server_load: ServerLoad | None = None
    hold_back: HoldBack | None = None
    comparisons: list[Comparison] = []
    not_compared: int = 0
    """Prompts beyond the limit of those compared."""
    ids: IdCheck | None = None
    client: ClientFacts


def probe_details(record: Record) -> ProbeDetails:
    """The details of a record. Raises ``msgspec.ValidationError`` for another form."""
    return msgspec.convert(record.details, ProbeDetails)
