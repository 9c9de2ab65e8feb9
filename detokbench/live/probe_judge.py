"""From the bytes of a request to its outcome, its chunks and its figures. Reads no clock."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from detokbench.live.counting_chunks import Counted, count_tokens, undo_cumulative
from detokbench.live.itl import chunk_gaps, mean_itl_s, token_gaps
from detokbench.live.openai_stream import Answer, read_answer
from detokbench.live.probe_errors import MOST_NOTE, http_error, masked, one_line
from detokbench.live.probe_fetch import Raw
from detokbench.live.probe_secrets import blotted
from detokbench.live.sse import Parsed, parse_stream
from detokbench.records.probe import MEASURED, RequestFacts, RequestOutcome
from detokbench.vocab.vocabulary import Vocabulary

_SILENT_SHARE = 0.5
"""Silent for so much of its time at the end, a request was waiting; else it was still streaming."""
_MOST_REASON = 60
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class Judged:
    """A request with its outcome; ``answer`` holds what was read of it, whatever the outcome."""

    raw: Raw
    outcome: RequestOutcome
    note: str
    answer: Answer
    cumulative: bool
    counted: Counted

    @property
    def is_measured(self) -> bool:
        """Whether its stream came whole."""
        return self.outcome in MEASURED

    @property
    def text(self) -> str:
        """The text that came."""
        return "".join(chunk.text for chunk in self.answer.chunks)

    @property
    def ttft_s(self) -> float | None:
        """Seconds to the first chunk with text of any kind."""
        times = (c.at_s for c in self.answer.chunks if c.text or c.other_text)
        first = next(times, None)
        return None if first is None else first - self.raw.sent_s


def judge(raw: Raw, vocabulary: Vocabulary | None, secrets: tuple[str, ...] = ()) -> Judged:
    """Parse a request and name its outcome. ``secrets`` are blotted out of its note."""
    if raw.status == 200 and raw.content_type == "text/event-stream":
        parsed = parse_stream(raw.reads)
        answer = read_answer(parsed.events)
        outcome, note = _of_stream(raw, parsed, answer)
    else:
        answer = Answer()
        outcome, note = _without_stream(raw)
    if outcome == "http-error":
        note = http_error(raw, secrets)
    else:
        note = one_line(masked(note, secrets), MOST_NOTE)
    if answer.finish_reason:
        answer.finish_reason = one_line(blotted(answer.finish_reason, secrets), _MOST_REASON)
    cumulative = undo_cumulative(answer)
    counted = count_tokens(answer, vocabulary)
    return Judged(raw, outcome, note, answer, cumulative, counted)


def _of_stream(raw: Raw, parsed: Parsed, answer: Answer) -> tuple[RequestOutcome, str]:
    if raw.ended == "line" or parsed.too_long:
        return "too-long-line", f"after {raw.size:,} bytes, {_chunks(answer)}"
    if answer.error:
        return "error-frame", answer.error
    if answer.bad_frame:
        return "bad-json", answer.bad_frame
    if answer.done and answer.content:
        return "ok", _odd_counts(answer)
    return _without_done(raw, parsed, answer)


def _without_done(raw: Raw, parsed: Parsed, answer: Answer) -> tuple[RequestOutcome, str]:
    if raw.ended == "bytes":
        return "endless", f"after {raw.size:,} bytes, {_chunks(answer)}"
    if raw.ended == "time":
        return _out_of_time(raw, answer)
    if raw.ended == "closed" or parsed.inside_line:
        return "cut-off", f"after {_chunks(answer)}"
    if not answer.content:
        return "empty", f"{raw.size:,} bytes came"
    return "no-done", _odd_counts(answer)


def _odd_counts(answer: Answer) -> str:
    return f"{answer.odd_counts:,} usage counts that cannot be" if answer.odd_counts else ""


def _chunks(answer: Answer) -> str:
    return f"{len(answer.content):,} chunks"


def _without_stream(raw: Raw) -> tuple[RequestOutcome, str]:
    if raw.ended == "refused":
        return "refused", raw.why
    if raw.ended == "bad-http":
        return "bad-http", raw.why
    if raw.status is None:
        return ("timeout", "no answer") if raw.ended == "time" else ("empty", raw.why)
    if raw.status != 200:
        return "http-error", ""
    return "bad-content-type", f"{raw.content_type or 'none'}, not text/event-stream"


def _out_of_time(raw: Raw, answer: Answer) -> tuple[RequestOutcome, str]:
    last_s = raw.last_s or (raw.reads[-1][0] if raw.reads else raw.sent_s)
    silent_s, seconds = raw.ended_s - last_s, raw.ended_s - raw.sent_s
    if silent_s > _SILENT_SHARE * seconds:
        return (
            "timeout",
            f"silent for the last {silent_s:.1f} s of {seconds:.1f}, {_chunks(answer)}",
        )
    return "endless", f"still sending after {seconds:.1f} s, {_chunks(answer)}"


def facts_of(judged: Judged, first_sent_s: float) -> RequestFacts:
    """What the record says of a request; figures only where its stream came whole."""
    raw, answer, counted = judged.raw, judged.answer, judged.counted
    facts = RequestFacts(
        prompt=raw.prompt,
        outcome=judged.outcome,
        note=judged.note,
        status=raw.status,
        started_s=raw.sent_s - first_sent_s,
        seconds=raw.ended_s - raw.sent_s,
        read_bytes=raw.size,
        chunks=len(answer.content),
        empty_chunks=sum(chunk.is_empty for chunk in answer.content),
        replacement_chunks=sum(_REPLACEMENT in chunk.text for chunk in answer.content),
        other_frames=len(answer.chunks) - len(answer.content),
        characters=len(judged.text),
        cumulative=judged.cumulative,
        finish_reason=answer.finish_reason,
    )
    if judged.is_measured:
        gaps = chunk_gaps(counted.arrivals)
        facts.ttft_s = judged.ttft_s
        facts.counted_by, facts.totals = counted.how, counted.totals
        facts.tokens = _total(counted)
        facts.chunk_gap_s = fmean(gaps) if gaps else None
        facts.itl_s = mean_itl_s(token_gaps(counted.arrivals))
    return facts


def _total(counted: Counted) -> int | None:
    if counted.how == "none":
        return None
    return round(sum(arrival.tokens for arrival in counted.arrivals))
