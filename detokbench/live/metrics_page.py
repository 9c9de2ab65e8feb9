"""What a server says of its own load: the Prometheus page of vLLM and of SGLang.

Names: vLLM 0.33 ``v1/metrics/loggers.py`` (PrometheusStatLogger) and, before 0.11,
``vllm:time_per_output_token_seconds``; SGLang 0.5.23 ``srt/observability/metrics_collector.py``.
"""

from __future__ import annotations

import re
from math import isfinite

from detokbench.records.probe import LoadPoint, ServerLoad

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{.*\})?\s+(\S+)(?:\s+-?\d+)?")
_NAMES: dict[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "tokens": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "itl_sum_s": (
        "vllm:inter_token_latency_seconds_sum",
        "vllm:time_per_output_token_seconds_sum",
        "sglang:inter_token_latency_seconds_sum",
        "sglang:time_per_output_token_seconds_sum",
    ),
    "itl_count": (
        "vllm:inter_token_latency_seconds_count",
        "vllm:time_per_output_token_seconds_count",
        "sglang:inter_token_latency_seconds_count",
        "sglang:time_per_output_token_seconds_count",
    ),
    "tokens_per_s": ("sglang:gen_throughput",),
}


def read_page(page: str) -> dict[str, float]:
    """The samples of a page, those of one name added up over their labels."""
    found: dict[str, float] = {}
    for line in page.splitlines():
        match = None if line.startswith("#") else _SAMPLE.fullmatch(line.strip())
        if match is None:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if isfinite(value):
            found[match[1]] = found.get(match[1], 0.0) + value
    return {name: value for name, value in found.items() if isfinite(value)}


def load_point(page: str, at_s: float) -> tuple[str, LoadPoint] | None:
    """The engine and its load by one page; None where the page is of no engine known here."""
    samples = read_page(page)
    found = {
        field: next(((name, samples[name]) for name in names if name in samples), None)
        for field, names in _NAMES.items()
    }
    engines = {sample[0].partition(":")[0] for sample in found.values() if sample is not None}
    if not engines:
        return None
    values = {field: sample[1] for field, sample in found.items() if sample is not None}
    return ", ".join(sorted(engines)), LoadPoint(at_s=at_s, **values)


def server_load(engine: str, points: list[LoadPoint]) -> ServerLoad:
    """The load between the first and the last of at least two looks."""
    before, *during, after = points
    running = [point.running for point in points if point.running is not None]
    tokens = _grown(before.tokens, after.tokens)
    itl_s = _grown(before.itl_sum_s, after.itl_sum_s)
    itl_count = _grown(before.itl_count, after.itl_count)
    seconds = after.at_s - before.at_s
    return ServerLoad(
        engine=engine,
        before=before,
        during=during,
        after=after,
        most_running=max(running, default=None),
        tokens_per_s=tokens / seconds if tokens is not None and seconds > 0 else None,
        itl_s=itl_s / itl_count if itl_s is not None and itl_count else None,
    )


def _grown(before: float | None, after: float | None) -> float | None:
    """By how much a counter has grown; None where it is missing or the server began anew."""
    if before is None or after is None or after < before:
        return None
    return after - before
