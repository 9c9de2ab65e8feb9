"""What a stream interval of k ids spares, in each engine.

Both engines send a request's first ids at once, then whenever k or more are unsent, and the rest
at its end (vLLM 0.33.0, ``RequestState.make_request_output``; SGLang 0.5.23,
``OutputStreamer.accept``). vLLM decodes every id at every step and spares only the building and
sending of chunks. SGLang's detokenizer hears of a request only when something is sent: it decodes
once an interval, over windows that hold the ids of a whole interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


def steps_between_chunks(interval: int, ids_per_step: int = 1) -> int:
    """Steps until ``interval`` ids or more are unsent, with ``ids_per_step`` new ones a step."""
    return -(-interval // ids_per_step)


def chunks_per_step(interval: int, ids_per_step: int = 1) -> float:
    """Chunks a request and step, between its first chunk and its last.

    With several ids a step this is below ``ids_per_step / interval`` wherever the interval is no
    multiple: ids beyond it ride along, and counting starts anew.
    """
    return 1 / steps_between_chunks(interval, ids_per_step)


def ids_per_chunk(interval: int, ids_per_step: int = 1) -> int:
    """Ids that a chunk carries, between a request's first chunk and its last."""
    return steps_between_chunks(interval, ids_per_step) * ids_per_step


def chunk_count(ids: int, interval: int, ids_per_step: int = 1) -> int:
    """Chunks of a request of ``ids`` ids: ``1 + ceil((ids − 1) / k)`` at one id a step."""
    if ids <= 0:
        return 0
    steps = -(-ids // ids_per_step)
    return 1 + -(-(steps - 1) // steps_between_chunks(interval, ids_per_step))


def sglang_window_ids(interval: int, ids_per_step: int = 1) -> tuple[int, int]:
    """Ids in SGLang's two windows of a chunk: the last chunk's, and those with the new ones."""
    ids = ids_per_chunk(interval, ids_per_step)
    return ids, 2 * ids


def vllm_sequence_s(
    decode_id_s: float, chunk_s: float, interval: int, ids_per_step: int = 1
) -> float:
    """Seconds a sequence and step in vLLM's front end.

    ``decode_id_s``: one id, decoded and checked for stops. ``chunk_s``: one chunk, built and sent.
    """
    return decode_id_s * ids_per_step + chunk_s * chunks_per_step(interval, ids_per_step)


def sglang_sequence_s(
    windows_s: float, chunk_s: float, interval: int, ids_per_step: int = 1
) -> float:
    """Seconds a sequence and step in SGLang's detokenizer and front end.

    ``windows_s``: both windows of one chunk, decoded, as wide as ``sglang_window_ids`` says.
    ``chunk_s``: one chunk, built and sent.
    """
    return (windows_s + chunk_s) * chunks_per_step(interval, ids_per_step)


def smallest_interval(
    host_s: Callable[[int], float], t_step_s: float, intervals: Iterable[int] = range(1, 65)
) -> int | None:
    """The smallest k with ``host_s(k) <= t_step_s`` (seconds a step at one batch).

    None where none of ``intervals`` keeps up: in vLLM decoding alone may take longer than the step.
    """
    return next((k for k in sorted(intervals) if host_s(k) <= t_step_s), None)
