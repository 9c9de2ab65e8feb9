"""What stop strings cost SGLang's scheduler, which decodes a tail of the output to find them.

Counted after SGLang 0.5.23 (``Req.update_finish_state``, ``Req.check_match_stop_str_prefix`` and
``OutputStreamer.accept``): without stops nothing is decoded; with any, the finish check decodes
the tail once a step, and again for each id but the last where several were accepted and a regex
did not match. A request that streams has its tail decoded once more whenever a chunk is due, to
see whether a stop string may be about to complete (regexes are not asked). A chunk that is
suppressed stays due, and is checked again at the next step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from detokbench.model.stream_interval import chunks_per_step


@dataclass(frozen=True, slots=True)
class Decodes:
    """Decodes a request and step, or of one whole stream."""

    finish: float
    """By the finish check, of the window widened by the accepted ids."""
    regex_retries: float
    """By the finish check, of shorter windows, for regexes that did not match."""
    prefix: float
    """By the prefix check of a due chunk, of the window that is not widened."""

    @property
    def total(self) -> float:
        return self.finish + self.regex_retries + self.prefix


def decodes_per_step(
    strings: int, regexes: int, *, streaming: bool, interval: int = 1, ids_per_step: int = 1
) -> Decodes:
    """Decodes a request and step while nothing matches and nothing is suppressed: a floor.

    ``strings`` and ``regexes`` count the request's stops. One id a step gives 0, 1 or 1 + 1/k.
    """
    if not strings and not regexes:
        return Decodes(0, 0, 0)
    due = chunks_per_step(interval, ids_per_step) if streaming and strings else 0.0
    return Decodes(1, regexes * (ids_per_step - 1), due)


def decodes_of_stream(
    accepted: Sequence[int], suppressed: Sequence[bool], *, regexes: int = 0, interval: int = 1
) -> Decodes:
    """Decodes of one request that streams with stop strings, from its first step to its last.

    ``accepted[i]`` ids came in step i; ``suppressed[i]`` says whether a chunk due then would be
    held back. At the last step the request ends by its length: all goes out, unchecked. Divide by
    the number of steps to compare with ``decodes_per_step``. Where a stop ends the request
    instead, finding its end takes up to ``accepted[-1] − 1`` decodes more.
    """
    retries = sum(regexes * max(ids - 1, 0) for ids in accepted)
    prefix = sum(1 for _ in checks_of_stream(accepted, suppressed, interval))
    return Decodes(len(accepted), retries, prefix)


def checks_of_stream(
    accepted: Sequence[int], suppressed: Sequence[bool], interval: int = 1
) -> Iterator[tuple[int, int]]:
    """The prefix checks of one stream: the step of each, and the ids sent before it.

    Nothing is due at the last step, where the request ends.
    """
    sent = total = 0
    for step, (ids, held) in enumerate(zip(accepted[:-1], suppressed[:-1], strict=True)):
        total += ids
        if chunk_is_due(total, sent, interval):
            yield step, sent
            sent = sent if held else total


def chunk_is_due(total: int, sent: int, interval: int) -> bool:
    """Whether a request with ``total`` ids, ``sent`` of them sent, has a chunk to send."""
    return interval == 1 or total - sent >= interval or (sent == 0 and total > 0)


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds by part: of one decode or scan each, or of a request and step."""

    finish_decode_s: float
    """One decode of the finish check's window, widened by the ids accepted."""
    contain_s: float
    """Looking for stops in its text."""
    prefix_decode_s: float = 0.0
    """One decode of the prefix check's window."""
    prefix_scan_s: float = 0.0
    """Looking for a stop's beginning at the end of its text."""

    @property
    def total_s(self) -> float:
        return self.finish_decode_s + self.contain_s + self.prefix_decode_s + self.prefix_scan_s


def parts_per_step(decodes: Decodes, once: Parts) -> Parts:
    """Seconds a request and step by part, from what each costs once.

    A retry is taken to cost what the finish check's own decode and scan cost, which is a little
    too much: its window is shorter.
    """
    finish = decodes.finish + decodes.regex_retries
    return Parts(
        finish * once.finish_decode_s,
        finish * once.contain_s,
        decodes.prefix * once.prefix_decode_s,
        decodes.prefix * once.prefix_scan_s,
    )


def request_step_s(
    decodes: Decodes,
    finish_decode_s: float,
    prefix_decode_s: float,
    finish_scan_s: float = 0.0,
    prefix_scan_s: float = 0.0,
) -> float:
    """Seconds of scheduler time a request and step: decodes and scans, each as measured.

    ``finish_decode_s`` and ``prefix_decode_s``: one decode of the window of that check (they
    differ by the ids accepted). The scans: looking for stops in the tail, and for a stop's proper
    prefix at its end.
    """
    once = Parts(finish_decode_s, finish_scan_s, prefix_decode_s, prefix_scan_s)
    return parts_per_step(decodes, once).total_s


def scheduler_s(batch: int, request_s: float) -> float:
    """Seconds of scheduler time a step of ``batch`` requests at ``request_s`` each."""
    return batch * request_s


def step_with_scheduler_s(t_step_s: float, scheduler_step_s: float, *, overlap: bool) -> float:
    """Seconds a step lasts: the slower of GPU and scheduler with overlap, their sum without."""
    return max(t_step_s, scheduler_step_s) if overlap else t_step_s + scheduler_step_s


def headroom_used(t_step_s: float, scheduler_step_s: float) -> float:
    """The part of T_step the scheduler fills; above 1 it is the scheduler that sets the pace."""
    return scheduler_step_s / t_step_s
