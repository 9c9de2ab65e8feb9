"""The prompts of a probe: built in, or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from detokbench.errors import DetokbenchError, usage_error
from detokbench.live.json_text import NotJsonError, read_json
from detokbench.live.probe_url import Api
from detokbench.workload.texts import load_text, sentences

LONG_STOP = "\n\nHuman: that is all, thank you. Please stop here."
"""50 characters that no answer is likely to hold."""
_MULTILINGUAL = ("han", "kana", "hangul", "devanagari", "thai", "burmese", "arabic", "emoji")
_MOST_BYTES = 64 << 20
_MOST_LEVELS = 100


class Prompt(NamedTuple):
    """A text, or the messages of a chat; ``name`` is what the record calls it."""

    name: str
    text: str | None = None
    messages: list[Any] | None = None

    def fields(self, api: Api) -> dict[str, Any]:
        """What a request says of it."""
        if api == "completions":
            return {"prompt": self.text}
        return {"messages": self.messages or [{"role": "user", "content": self.text}]}


STOP_PROMPT = Prompt("long-stop", "Count to twenty.")


def built_in_prompts() -> list[Prompt]:
    """Characters that split, one to be asked with a long stop string, and many scripts at once."""
    samples = [sentences(load_text(name))[0].strip() for name in _MULTILINGUAL]
    return [
        Prompt("split-characters", "Repeat exactly, nothing else: 我很感谢你的热情"),
        STOP_PROMPT,
        Prompt("multilingual", "Repeat exactly, nothing else:\n" + "\n".join(samples)),
    ]


def read_prompts(path: Path, api: Api) -> list[Prompt]:
    """One prompt a line; a line that is a JSON object has ``prompt`` or ``messages``.

    Raises DetokbenchError: exit code 2 for contents that are no prompts, 5 for no access.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise usage_error(f"--prompts: {path.name} is larger than {_MOST_BYTES >> 20} MiB")
        # Characters such as U+2028 and U+0085 are a prompt's own: only these end a line.
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise usage_error(f"--prompts: {path.name} is not UTF-8") from error
    except OSError as error:
        raise DetokbenchError(f"--prompts: cannot read {path.name}: {error.strerror}") from error
    prompts = [
        _prompt(line, f"{path.name}:{number}", api)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not prompts:
        raise usage_error(f"--prompts: {path.name} has no prompt in it")
    return prompts


def _prompt(line: str, name: str, api: Api) -> Prompt:
    if not line.lstrip().startswith("{"):
        return Prompt(name, line)
    try:
        entry = read_json(line)
    except NotJsonError as error:
        raise usage_error(f"--prompts: {name} begins with {{ and is {error}") from error
    text, messages = entry.get("prompt"), entry.get("messages")
    if isinstance(text, str):
        return Prompt(name, text)
    if not isinstance(messages, list) or not messages:
        raise usage_error(f"--prompts: {name} has neither a 'prompt' nor 'messages'")
    if api == "completions":
        raise usage_error(f"--prompts: {name} has messages; ask with --api chat")
    if _is_deeper(messages, _MOST_LEVELS):
        raise usage_error(f"--prompts: {name} has messages nested over {_MOST_LEVELS} deep")
    return Prompt(name, messages=messages)


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects lie in each other more than so many times."""
    if not isinstance(value, list | dict):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(entry, levels - 1) for entry in inner)
