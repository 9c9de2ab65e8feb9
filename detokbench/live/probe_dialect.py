"""Which optional fields of a request a server takes, found out by asking for a few tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from detokbench.live.json_text import NotJsonError, read_json
from detokbench.live.openai_stream import error_message
from detokbench.live.probe_fetch import Raw
from detokbench.live.probe_prompts import Prompt
from detokbench.live.probe_url import Api

_REFUSALS = {400, 422}
_TOKENS_TO_TRY = 4
_CONTINUOUS = "stream_options.continuous_usage_stats"


@dataclass
class Dialect:
    """How a server is spoken to: its model, and the optional fields that it is sent."""

    api: Api
    model: str | None
    seed: int
    asks_ids: bool
    asks_logprobs: bool
    refused: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> list[str]:
        """Names of the optional fields, those first that servers are least likely to take."""
        names = ["return_token_ids"] if self.asks_ids else []
        names += ["logprobs"] if self.asks_logprobs else []
        return [*names, _CONTINUOUS, "stream_options", "seed", "max_tokens"]

    @property
    def taken(self) -> list[str]:
        """Those of them that it is sent."""
        return [name for name in self.wanted if name not in self.refused]

    def body(
        self, prompt: Prompt, max_tokens: int, stream: bool, stop: list[str] | None = None
    ) -> dict[str, Any]:
        """A request at temperature 0."""
        taken = self.taken
        length = "max_tokens" if "max_tokens" in taken else "max_completion_tokens"
        body = {**prompt.fields(self.api), "temperature": 0, length: max_tokens, "stream": stream}
        if self.model is not None:
            body["model"] = self.model
        if stop:
            body["stop"] = stop
        if "seed" in taken:
            body["seed"] = self.seed
        if stream and "stream_options" in taken:
            body["stream_options"] = {"include_usage": True}
            if _CONTINUOUS in taken:
                body["stream_options"]["continuous_usage_stats"] = True
        if stream and "return_token_ids" in taken:
            body["return_token_ids"] = True
        if stream and "logprobs" in taken:
            body["logprobs"] = 1 if self.api == "completions" else True
        return body


async def learn(
    dialect: Dialect, prompt: Prompt, ask: Callable[[dict[str, Any]], Awaitable[Raw]]
) -> Raw:
    """Leave out, one after the other, the fields that the server refuses; those it names first.

    Returns the last request. Where none is taken at all, what is wrong is something else, and all
    fields stay.
    """
    while True:
        raw = await ask(dialect.body(prompt, _TOKENS_TO_TRY, stream=True))
        if raw.status not in _REFUSALS:
            return raw
        if not dialect.taken:
            dialect.refused = []
            return raw
        dialect.refused += _to_leave_out(dialect.taken, raw)


def _to_leave_out(taken: list[str], raw: Raw) -> list[str]:
    body = raw.reads[0][1] if raw.reads else b""
    try:
        message = error_message(read_json(body))
    except NotJsonError:
        message = body.decode("utf-8", "replace")
    named = [name for name in taken if name.rpartition(".")[2] in message]
    if named and named != ["stream_options"]:
        return named[:1]
    if named:
        return [name for name in taken if name.startswith("stream_options")]
    return taken[:1]
