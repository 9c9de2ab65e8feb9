"""The kinds of requests: plain completions, and what one more feature costs beside them.

The flags are official ones of both servers (vLLM 0.33, SGLang 0.5.23).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from detokbench.records.frontend import PLAIN

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
_QUESTION = "What do you know about this text?"
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up a word.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    },
}


@dataclass(frozen=True)
class Variant:
    """``fields`` are put into the request, ``flags`` on the server's command line."""

    name: str
    path: str = COMPLETIONS
    fields: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @property
    def is_chat(self) -> bool:
        return self.path == CHAT

    @property
    def stop(self) -> list[str]:
        """Stop strings of its requests."""
        return list(self.fields.get("stop", []))

    def body(self, model: str, prompt: list[int]) -> str:
        """The JSON of a request without its last brace; number and length come behind it.

        A chat has a text for a prompt: ids cannot be sent there.
        """
        asked: dict[str, Any] = {"model": model, "stream": True, "temperature": 0}
        if self.is_chat:
            asked["messages"] = [{"role": "user", "content": _QUESTION}]
        else:
            asked["prompt"] = prompt
        asked |= {"ignore_eos": True, **self.fields}
        return msgspec.json.encode(asked).decode()[:-1]


def plain() -> Variant:
    """Completions, and nothing else."""
    return Variant(PLAIN)


def variants(
    engine: str,
    *,
    chat: bool,
    stop: list[str],
    logprobs: int | None,
    reasoning_parser: str | None,
    tool_call_parser: str | None,
) -> list[Variant]:
    """What is measured beside plain completions; those with flags need a server of their own."""
    found = []
    if stop:
        found.append(Variant("stop strings", fields={"stop": stop}))
    if logprobs is not None:
        found.append(Variant(f"logprobs {logprobs}", fields={"logprobs": logprobs}))
    if chat or reasoning_parser or tool_call_parser:
        found.append(Variant("chat", CHAT))
    if reasoning_parser:
        flags: tuple[str, ...] = ("--reasoning-parser", reasoning_parser)
        found.append(Variant(f"chat, reasoning parser {reasoning_parser}", CHAT, flags=flags))
    if tool_call_parser:
        flags = ("--tool-call-parser", tool_call_parser)
        if engine.startswith("vllm"):  # there it must be allowed besides
            flags = ("--enable-auto-tool-choice", *flags)
        fields = {"tools": [_TOOL], "tool_choice": "auto"}
        found.append(Variant(f"chat, tool parser {tool_call_parser}", CHAT, fields, flags))
    return found
