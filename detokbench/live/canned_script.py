"""What the canned server plays: the frames of a stream, and when each is due.

Bytes and times only; the server that sends them is in ``canned_server.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Behaviour = Literal[
    "stream",
    "error-json",
    "error-html",
    "error-frame",
    "close-mid-stream",
    "close-mid-line",
    "long-line",
    "bad-json",
    "endless",
    "stall",
    "html",
    "no-answer",
    "close-at-once",
    "nothing",
]
"""``stream`` is the good one; ``nothing`` is a stream without a single byte in it."""
Usage = Literal["none", "final", "continuous"]


@dataclass(frozen=True)
class Script:
    """One answer: its tokens, their number a chunk and their pace, and what else is sent.

    ``pace_s`` is the time of one token; chunks are due on a schedule of ``first_s`` plus a multiple
    of it. ``cut_bytes`` sends the stream in pieces of so many bytes. ``hold_chars`` keeps so many
    characters back until the end where the request has stop strings, as vLLM does (the length of
    the longest stop less one; OutputProcessor and IncrementalDetokenizer.get_next_output_text).
    """

    tokens: tuple[str, ...] = tuple(f" w{number}" for number in range(24))
    ids: tuple[int, ...] = ()
    """Ids of the tokens; without any they are numbered from 0."""
    per_chunk: int = 1
    pace_s: float = 0.0
    first_s: float = 0.0
    behaviour: Behaviour = "stream"
    status: int = 400
    usage: Usage = "final"
    logprobs: bool = False
    give_ids: bool = False
    role: bool = True
    done: bool = True
    cumulative: bool = False
    holds: tuple[int, ...] = ()
    """Numbers of chunks whose text comes with the next one, as where a character is incomplete."""
    hold_for_stops: bool = False
    cut_bytes: int = 0
    whole_text: str | None = None
    """The text of the answer that is not streamed, where it is not that of the stream."""
    long_line_bytes: int = 100_000_000

    @property
    def text(self) -> str:
        """What the stream says."""
        return "".join(self.tokens)

    @property
    def all_ids(self) -> list[int]:
        """The id of every token."""
        return list(self.ids) or list(range(len(self.tokens)))


@dataclass(frozen=True)
class Frame:
    """One event of the stream, and when it is due after the request came, in seconds."""

    due_s: float
    data: str


def frames(script: Script, chat: bool, stop: list[str]) -> Iterator[Frame]:
    """The events of a good stream, in order, ``[DONE]`` included where the script has it."""
    if chat and script.role:
        yield _frame(0.0, {"delta": {"role": "assistant", "content": ""}}, chat)
    held = max((len(text) - 1 for text in stop), default=0) if script.hold_for_stops else 0
    sent = count = 0
    due_s = script.first_s
    for number, start in enumerate(range(0, len(script.tokens), script.per_chunk)):
        end = min(start + script.per_chunk, len(script.tokens))
        due_s = script.first_s + script.pace_s * (end - script.per_chunk)
        count = end
        text = "".join(script.tokens[:end])
        visible = sent if number in script.holds else max(sent, len(text) - held)
        shown = text[:visible] if script.cumulative else text[sent:visible]
        sent = visible
        yield _frame(due_s, _choice(script, shown, start, end, chat), chat, _usage(script, count))
    last = script.text[sent:]
    final: dict[str, Any] = {"finish_reason": "length"}
    final |= {"delta": {"content": last} if last else {}} if chat else {"text": last}
    yield _frame(due_s, final, chat, _usage(script, count))
    if script.usage != "none":
        usage = {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count}
        yield Frame(due_s, json.dumps({"choices": [], "usage": usage}))
    if script.done:
        yield Frame(due_s, "[DONE]")


def whole_answer(script: Script, chat: bool) -> bytes:
    """The answer that is not streamed, as JSON."""
    text = script.text if script.whole_text is None else script.whole_text
    said: dict[str, Any] = (
        {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    )
    usage = {"prompt_tokens": 5, "completion_tokens": len(script.tokens)}
    choice = {"index": 0, "finish_reason": "length", **said}
    return json.dumps({"model": "canned", "choices": [choice], "usage": usage}).encode()


def _choice(script: Script, text: str, start: int, end: int, chat: bool) -> dict[str, Any]:
    choice: dict[str, Any] = {"delta": {"content": text}} if chat else {"text": text}
    if script.logprobs:
        tokens = script.tokens[start:end]
        choice["logprobs"] = (
            {"content": [{"token": token, "logprob": -0.5} for token in tokens]}
            if chat
            else {"tokens": list(tokens), "token_logprobs": [-0.5] * len(tokens)}
        )
    if script.give_ids:
        choice["token_ids"] = script.all_ids[0 if script.cumulative else start : end]
    return choice


def _usage(script: Script, count: int) -> dict[str, int] | None:
    if script.usage != "continuous":
        return None
    return {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count}


def _frame(
    due_s: float, choice: dict[str, Any], chat: bool, usage: dict[str, int] | None = None
) -> Frame:
    body: dict[str, Any] = {
        "id": "canned",
        "object": "chat.completion.chunk" if chat else "text_completion",
        "choices": [{"index": 0, "finish_reason": None, **choice}],
    }
    if usage is not None:
        body["usage"] = usage
    return Frame(due_s, json.dumps(body, ensure_ascii=False))
