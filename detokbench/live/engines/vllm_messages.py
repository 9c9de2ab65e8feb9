"""vLLM's messages between front end and engine: requests decoded, outputs encoded.

Requests come as frames: a type byte (EngineCoreRequestType), then msgpack. Outputs go out as one
msgpack array a step and front end (EngineCoreOutputs), of which each request has a row
(EngineCoreOutput); what is left out at an array's end has its default. Rows are put together from
parts encoded beforehand, since a step's own work must be small. Arrays of log-probabilities are
``[dtype, shape, ext 3]`` (``vllm/v1/serial_utils.py``). Places of fields: ``vllm_versions``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.live.engines.vllm_versions import Layout

ADD, ABORT, UTILITY = b"\x00", b"\x01", b"\x03"
STOP, LENGTH, ERROR = 0, 1, 3  # FinishReason
_QUEUED, _SCHEDULED = 1, 2  # EngineCoreEventType
_RAW_VIEW = 3
_DEFAULT_MAX_TOKENS = 16  # SamplingParams.max_tokens where it is left out
_EVENTS, _FINISH_REASON = 7, 5

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_NIL = b"\xc0"


class Add(msgspec.Struct, frozen=True):
    """A request. ``number`` is its seed (None without one), ``max_tokens`` None without a limit.

    ``logprobs`` is how many alternatives a token's log-probabilities are to have beside its own,
    None where they are not asked for. ``generates`` is False for what is no text generation.
    """

    request_id: str
    client: int
    number: int | None
    max_tokens: int | None
    logprobs: int | None
    external_id: str
    generates: bool = True


class Abort(msgspec.Struct, frozen=True):
    """The front end wants nothing more of these requests."""

    request_ids: list[str]


class Utility(msgspec.Struct, frozen=True):
    """A call that must be answered, to its client and under its id."""

    client: int
    call_id: int
    method: str


def decode_request(frames: Sequence[bytes], layout: Layout) -> Add | Abort | Utility | None:
    """A message of the front end; None for one that is no concern of an engine on its own.

    Raises DetokbenchError for a message that does not have the layout's form.
    """
    try:
        content: Any = _decode(frames[1]) if len(frames) > 1 else None
        if frames[0] == ADD:
            return _add(content, layout)
        if frames[0] == ABORT:
            return msgspec.convert({"request_ids": content}, Abort)
        if frames[0] == UTILITY:
            client, call_id, method = content[:3]
            return msgspec.convert(
                {"client": client, "call_id": call_id, "method": method}, Utility
            )
    except (msgspec.MsgspecError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise DetokbenchError(f"a message of vLLM's has another form: {error}") from error
    return None


def _add(content: Any, layout: Layout) -> Add:
    def at(place: int) -> Any:
        return content[place] if place < len(content) else None

    sampling = at(3)
    asked = sampling or {}
    return msgspec.convert(
        {
            "request_id": content[0],
            "client": at(layout.client_index) or 0,
            "number": asked.get("seed"),
            "max_tokens": asked.get("max_tokens", _DEFAULT_MAX_TOKENS),
            "logprobs": asked.get("logprobs"),
            "external_id": at(layout.external_id) or content[0],
            "generates": sampling is not None,
        },
        Add,
    )


def array_head(length: int) -> bytes:
    """The bytes before the elements of a msgpack array."""
    if length < 16:
        return bytes([0x90 | length])
    if length < 1 << 16:
        return b"\xdc" + length.to_bytes(2, "big")
    return b"\xdd" + length.to_bytes(4, "big")


def ids_part(ids: Iterable[int]) -> bytes:
    """``new_token_ids`` of a row."""
    return _encode(list(ids))


def row_head(request_id: str, fields: int = 2) -> bytes:
    """The beginning of a row of so many fields, up to its ids."""
    return array_head(fields) + _encode(request_id)


def full_row(
    request_id: str,
    ids: bytes,
    logprobs: bytes | None = None,
    finish_reason: int | None = None,
    events: bytes | None = None,
) -> bytes:
    """A row with whatever it has; ``ids``, ``logprobs`` and ``events`` are encoded already."""
    fields = [_encode(request_id), ids, logprobs or _NIL, _NIL, _NIL, _NIL, _NIL, _NIL]
    if finish_reason is not None:
        fields[_FINISH_REASON] = _encode(finish_reason)
    if events is not None:
        fields[_EVENTS] = events
    while fields[-1] == _NIL:
        fields.pop()
    return array_head(len(fields)) + b"".join(fields)


def events_part(queued_s: float, scheduled_s: float) -> bytes:
    """``events`` of a request's first row: when it came and when it was begun (monotonic, s)."""
    return _encode(
        [
            {"type": _QUEUED, "timestamp": queued_s},
            {"type": _SCHEDULED, "timestamp": scheduled_s},
        ]
    )


def logprobs_part(ids: Sequence[int], values: Sequence[float], rank: int = 1) -> bytes:
    """``new_logprobs`` of one token (LogprobsLists): its own id first, then the alternatives.

    ``values`` are the log-probabilities of ``ids``, ``rank`` that of the token's own.
    """
    width = len(ids)
    return _encode(
        [
            ["<i4", [1, width], msgspec.msgpack.Ext(_RAW_VIEW, struct.pack(f"<{width}i", *ids))],
            ["<f4", [1, width], msgspec.msgpack.Ext(_RAW_VIEW, struct.pack(f"<{width}f", *values))],
            ["<i4", [1], msgspec.msgpack.Ext(_RAW_VIEW, struct.pack("<i", rank))],
            None,
        ]
    )


def step_message(rows: Sequence[bytes], stats: bytes, timestamp_s: float) -> bytes:
    """EngineCoreOutputs of one step: encoded rows, encoded ``scheduler_stats``, monotonic time."""
    return b"".join(
        (
            b"\x94\x00",  # four fields, of which the first is engine_index 0
            array_head(len(rows)),
            *rows,
            stats,
            b"\xcb",
            struct.pack(">d", timestamp_s),
        )
    )


def no_stats() -> bytes:
    """``scheduler_stats`` where the engine keeps none."""
    return _NIL


def stats_part(running: int, waiting: int, step: int, kv_cache_usage: float) -> bytes:
    """``scheduler_stats`` of a step: every field that the Rust front end asks for."""
    return _encode(
        {
            "num_running_reqs": running,
            "num_waiting_reqs": waiting,
            "num_skipped_waiting_reqs": 0,
            "step_counter": step,
            "current_wave": 0,
            "kv_cache_usage": kv_cache_usage,
            "prefix_cache_stats": {
                "reset": False,
                "requests": 0,
                "queries": 0,
                "hits": 0,
                "preempted_requests": 0,
                "preempted_queries": 0,
                "preempted_hits": 0,
            },
            "connector_prefix_cache_stats": None,
            "kv_cache_eviction_events": [],
            "spec_decoding_stats": None,
            "kv_connector_stats": None,
            "waiting_lora_adapters": {},
            "running_lora_adapters": {},
            "cudagraph_stats": None,
            "perf_stats": None,
        }
    )


def utility_message(call_id: int, result: Any, timestamp_s: float, failure: str = "") -> bytes:
    """EngineCoreOutputs with the answer to a utility call, or why there is none."""
    answer = [call_id, failure or None, None if failure else [None, result]]
    return _encode([0, [], None, timestamp_s, answer])
