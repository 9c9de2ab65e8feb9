"""What the events of an OpenAI-compatible stream say: chunks of text, counts, ids, how it ended.

Fields beyond the public interface are those of vLLM 0.33 (CompletionResponseStreamChoice and
ChatCompletionResponseStreamChoice: ``token_ids``; StreamOptions: ``continuous_usage_stats``;
``reasoning``) and SGLang 0.5.23 (``reasoning_content``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from detokbench.live.json_text import NotJsonError, json_of, read_json
from detokbench.live.sse import DONE, Event

Kind = Literal["content", "role", "final", "usage"]
"""``role``: the first frame of a chat, with no text. ``final``: an end reason and no text."""
MOST_TOKENS = 1 << 24
"""As many as can be asked for: a count above it is none."""
_ERROR_EVENT = b"error"
_NO_ID = 1 << 63
_OTHER_TEXT = ("reasoning_content", "reasoning", "refusal")


@dataclass(slots=True)
class Chunk:
    """One frame: what it adds, and when it came. Counts are None where the server gives none."""

    at_s: float
    kind: Kind
    text: str = ""
    other_text: str = ""
    """Text that is no answer: reasoning, arguments of tools."""
    ids: list[int] | None = None
    logprobs: int | None = None
    """Entries of log-probabilities, one for each token."""
    usage: int | None = None
    """Tokens of the whole answer so far."""

    @property
    def is_empty(self) -> bool:
        """A frame in the place of text that has none."""
        return self.kind == "content" and not self.text and not self.other_text


@dataclass
class Answer:
    """A stream as read; ``bad_frame`` and ``error`` say what ended the reading early."""

    chunks: list[Chunk] = field(default_factory=list)
    done: bool = False
    finish_reason: str | None = None
    bad_frame: str = ""
    error: str = ""
    """The message of an error that came within the stream."""
    usage: int | None = None
    """Tokens of the answer by the last count that came."""
    odd_counts: int = 0
    """Counts of tokens that cannot be: negative, above ``MOST_TOKENS`` or no whole number."""

    @property
    def content(self) -> list[Chunk]:
        """The frames that stand for text, empty ones included."""
        return [chunk for chunk in self.chunks if chunk.kind == "content"]


class NotAFrameError(Exception):
    """Data that is no frame of such a stream: the text says why."""


def read_answer(events: Iterable[Event]) -> Answer:
    """What a stream said, up to ``[DONE]``, to an error or to the first frame that is none."""
    answer = Answer()
    for event in events:
        if event.data.strip() == DONE:
            answer.done = True
            break
        if event.name == _ERROR_EVENT:
            answer.error = _said(event.data)
            break
        try:
            frame = _frame_of(event.data)
            if frame.get("error") is not None:
                answer.error = error_message(frame)
                break
            _add_frame(answer, frame, event.at_s)
        except NotAFrameError as error:
            answer.bad_frame = str(error)
            break
    return answer


def _said(data: bytes) -> str:
    """What an ``error`` event says, be it JSON or not."""
    try:
        return error_message(read_json(data))
    except NotJsonError:
        return data.decode("utf-8", "replace")


def error_message(body: Any) -> str:
    """The words of an error body, in any of the forms that servers use; else all of it, cut."""
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and key in body:
            body = body[key]
    return json_of(body)


def whole_text(body: Any) -> str:
    """The text of an answer that was not streamed. Raises NotAFrameError for another form."""
    try:
        choice = body["choices"][0]
        text = choice["text"] if "text" in choice else choice["message"]["content"]
    except (LookupError, TypeError) as error:
        raise NotAFrameError("the answer has no choices with a text") from error
    if text is not None and not isinstance(text, str):
        raise NotAFrameError("the text of the answer is no string")
    return text or ""


def _frame_of(data: bytes) -> dict[str, Any]:
    try:
        frame = read_json(data)
    except NotJsonError as error:
        raise NotAFrameError(str(error)) from error
    if not isinstance(frame, dict):
        raise NotAFrameError("a frame that is no object")
    return frame


def _add_frame(answer: Answer, frame: dict[str, Any], at_s: float) -> None:
    usage = frame.get("usage")
    said = usage.get("completion_tokens") if isinstance(usage, dict) else None
    count = _count_of(said)
    answer.odd_counts += said is not None and count is None
    if count is not None:
        answer.usage = count
    choices = frame.get("choices")
    if not choices:
        answer.chunks.append(Chunk(at_s, "usage", usage=answer.usage))
        return
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise NotAFrameError("a frame whose choices are no list of objects")
    choice = choices[0]
    chunk = _chunk_of(choice, at_s, is_first=not answer.chunks)
    chunk.usage = count
    answer.chunks.append(chunk)
    answer.finish_reason = _reason_of(choice.get("finish_reason")) or answer.finish_reason


def _count_of(said: Any) -> int | None:
    """A count of tokens; None for what cannot be one. JSON's true is an int to Python."""
    return said if type(said) is int and 0 <= said <= MOST_TOKENS else None


def _reason_of(said: Any) -> str | None:
    """A finish reason; SGLang's native form is an object with ``type``, others are their JSON."""
    if not said:
        return None
    return json_of(said.get("type", said) if isinstance(said, dict) else said)


def _chunk_of(choice: dict[str, Any], at_s: float, is_first: bool) -> Chunk:
    delta = choice.get("delta")
    said = delta if isinstance(delta, dict) else choice
    text = said.get("content" if said is delta else "text") or ""
    other = "".join(part for key in _OTHER_TEXT if isinstance(part := said.get(key), str))
    other += _tool_text(said.get("tool_calls"))
    if not isinstance(text, str):
        raise NotAFrameError("a text that is no string")
    kind: Kind = "content"
    if not text and not other:
        if choice.get("finish_reason"):
            kind = "final"
        elif is_first and "role" in said:
            kind = "role"
    ids = choice.get("token_ids")
    return Chunk(
        at_s, kind, text, other, _ids_of(ids) if isinstance(ids, list) else None,
        logprobs=_logprob_entries(choice.get("logprobs")),
    )  # fmt: skip


def _ids_of(said: list[Any]) -> list[int]:
    """Ids; -1, which is no token of any vocabulary, in the place of what cannot be one."""
    return [i if type(i) is int and 0 <= i < _NO_ID else -1 for i in said]


def _logprob_entries(logprobs: Any) -> int | None:
    if not isinstance(logprobs, dict):
        return None
    entries = logprobs.get("content", logprobs.get("tokens"))
    return len(entries) if isinstance(entries, list) else None


def _tool_text(calls: Any) -> str:
    """The arguments of tool calls, so that a frame with nothing else does not count as empty."""
    if not isinstance(calls, list):
        return ""
    functions = [call.get("function") for call in calls if isinstance(call, dict)]
    return "".join(
        json_of(function.get("name") or "") + json_of(function.get("arguments") or "")
        for function in functions
        if isinstance(function, dict)
    )
