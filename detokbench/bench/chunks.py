"""What a chunk costs beside its text: the output object, the JSON, the SSE frame.

Each is timed on its own over real deltas. The JSON has the fields of an OpenAI chat chunk and is
made both ways: with pydantic, as the engines' servers do it, and with msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Literal

import msgspec

from detokbench.bench.subjects import Timing

PARTS = ("object", "json-pydantic", "json-msgspec", "sse-frame")
_MODEL, _ID, _CREATED = "meta-llama/Meta-Llama-3-8B-Instruct", "chatcmpl-0123456789abcdef", 1


class ChunkPart:
    """One part of making chunks; a unit is a chunk."""

    def __init__(self, part: str, deltas: Sequence[str]) -> None:
        """Raises KeyError for a part that is none of ``PARTS``."""
        self._make = _MAKERS[part]()
        self._deltas = list(deltas)
        self._position = 0
        self.limit = len(self._deltas)

    def run(self, n: int) -> Timing:
        if self._position + n > len(self._deltas):
            self._position = 0
        deltas = self._deltas[self._position : self._position + n]
        self._position += n
        make = self._make
        start = perf_counter_ns()
        for delta in deltas:
            make(delta)
        return Timing(perf_counter_ns() - start, n)


@dataclass
class _Completion:
    """What vLLM's CompletionOutput holds of a step (vllm/outputs.py)."""

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    logprobs: Any
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class _Request:
    """What vLLM's RequestOutput holds of a step."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[_Completion]
    finished: bool
    metrics: Any = None
    num_cached_tokens: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


def _make_object() -> Callable[[str], Any]:
    prompt = list(range(128))

    def make(delta: str) -> _Request:
        completion = _Completion(0, delta, [0], None, None)
        return _Request(_ID, None, prompt, [completion], False)

    return make


def _make_pydantic() -> Callable[[str], Any]:
    from pydantic import BaseModel

    # Built here, since pydantic is heavy; the fields are those that a chat chunk sends.
    class Delta(BaseModel):
        role: str | None = None
        content: str | None = None
        reasoning: str | None = None
        tool_calls: list[dict[str, Any]] = []

    class Choice(BaseModel):
        index: int
        delta: Delta
        logprobs: dict[str, Any] | None = None
        finish_reason: str | None = None
        stop_reason: int | str | None = None

    class Chunk(BaseModel):
        id: str
        object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
        created: int
        model: str
        choices: list[Choice]
        usage: dict[str, int] | None = None

    def make(delta: str) -> str:
        choice = Choice(index=0, delta=Delta(content=delta), logprobs=None, finish_reason=None)
        chunk = Chunk(id=_ID, created=_CREATED, model=_MODEL, choices=[choice])
        return chunk.model_dump_json(exclude_unset=True)

    return make


class _Delta(msgspec.Struct, omit_defaults=True):
    content: str | None = None
    role: str | None = None


class _Choice(msgspec.Struct):
    index: int
    delta: _Delta
    logprobs: dict[str, Any] | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    id: str
    created: int
    model: str
    choices: list[_Choice]
    object: str = "chat.completion.chunk"


def _make_msgspec() -> Callable[[str], Any]:
    encode = msgspec.json.Encoder().encode

    def make(delta: str) -> bytes:
        return encode(_Chunk(_ID, _CREATED, _MODEL, [_Choice(0, _Delta(delta))]))

    return make


def _make_frame() -> Callable[[str], Any]:
    body = _make_pydantic()(" word")

    def make(delta: str) -> bytes:
        return f"data: {body}\n\n".encode()

    return make


_MAKERS: dict[str, Callable[[], Callable[[str], Any]]] = {
    "object": _make_object,
    "json-pydantic": _make_pydantic,
    "json-msgspec": _make_msgspec,
    "sse-frame": _make_frame,
}
