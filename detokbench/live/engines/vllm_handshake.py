"""How an engine makes itself known to vLLM's front end (``vllm/v1/engine/core.py``).

A DEALER socket whose identity is the engine's rank sends HELLO to the handshake port, gets the
addresses of all API servers, and sends READY (``EngineCoreProc.startup_handshake``); then it sends
the ready response on the input socket of each (``process_input_sockets``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import zmq

from detokbench.errors import DetokbenchError

IDENTITY = (0).to_bytes(2, "little")  # the only engine: rank 0
_LINGER_MS = 5000

Socket = zmq.Socket[bytes]


class Addresses(msgspec.Struct):
    """Where each API server takes and sends messages (EngineZmqAddresses), in their order."""

    inputs: list[str]
    outputs: list[str]
    coordinator_input: str | None = None
    coordinator_output: str | None = None
    frontend_stats_publish_address: str | None = None


class _Metadata(msgspec.Struct):
    """EngineHandshakeMetadata."""

    addresses: Addresses


class EngineFacts(msgspec.Struct):
    """What our engine claims to be: the figures of its ready response."""

    vllm_version: str
    max_model_len: int
    max_num_seqs: int
    dtype: str = "bfloat16"
    block_size: int = 16
    max_num_batched_tokens: int = 8192


def shake_hands(
    context: zmq.Context[Socket], address: str, given_up: Callable[[], bool] = lambda: False
) -> Addresses:
    """Register at ``address`` and wait for the addresses of the API servers.

    The front end may not be there yet: it gets our HELLO when it is. Raises DetokbenchError where
    it answers in another form, wants engines that coordinate with each other, or where waiting is
    ``given_up`` (asked twice a second).
    """
    with context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.IDENTITY, IDENTITY)
        socket.setsockopt(zmq.LINGER, _LINGER_MS)
        socket.connect(address)
        socket.send(_status("HELLO"))
        while not socket.poll(500):
            if given_up():
                raise DetokbenchError("nobody waits for vLLM's handshake any more")
        try:
            addresses = msgspec.msgpack.decode(socket.recv(), type=_Metadata).addresses
        except msgspec.MsgspecError as error:
            raise DetokbenchError(f"vLLM's handshake has another form: {error}") from error
        if addresses.coordinator_input is not None:
            raise DetokbenchError("vLLM wants to coordinate several engines; ours is one alone")
        socket.send(_status("READY"))
    return addresses


def _status(status: str) -> bytes:
    return msgspec.msgpack.encode({"status": status, "local": False, "headless": True})


def connect(
    context: zmq.Context[Socket], addresses: Addresses, facts: EngineFacts
) -> tuple[list[Socket], list[Socket]]:
    """The input sockets, each told that we are ready, and the output sockets."""
    inputs = []
    for address in addresses.inputs:
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.IDENTITY, IDENTITY)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(address)
        socket.send(msgspec.msgpack.encode(ready_response(facts)))
        inputs.append(socket)
    outputs = []
    for address in addresses.outputs:
        socket = context.socket(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.LINGER, 1000)
        socket.connect(address)
        outputs.append(socket)
    return inputs, outputs


def ready_response(facts: EngineFacts) -> dict[str, Any]:
    """EngineCoreReadyResponse, with every key that any known version asks for.

    Versions only gained keys, and ignore those that they do not know.
    """
    blocks = 1 + facts.max_num_seqs * facts.max_model_len // facts.block_size
    return {
        "max_model_len": facts.max_model_len,
        "num_gpu_blocks": blocks,
        "block_size": facts.block_size,
        "dp_stats_address": None,
        "dtype": facts.dtype,
        "vllm_version": facts.vllm_version,
        "world_size": 1,
        "data_parallel_size": 1,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "decode_context_parallel_size": 1,
        "data_parallel_rank": 0,
        "max_num_seqs": facts.max_num_seqs,
        "max_num_batched_tokens": facts.max_num_batched_tokens,
        "instance_id": "detokbench",
        "supports_lora": False,
        "max_loras": 0,
        "kv_cache_size_tokens": blocks * facts.block_size,
        "kv_cache_max_concurrency": float(facts.max_num_seqs),
        "effective_attention_block_size": facts.block_size,
    }


READY_KEYS = frozenset(ready_response(EngineFacts("", 0, 0)))
