"""What a probe is to do: the server, the requests, and what is looked at."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass

from detokbench.live.probe_fetch import Limits
from detokbench.live.probe_prompts import Prompt
from detokbench.live.probe_url import Api, Server
from detokbench.vocab.vocabulary import Vocabulary


@dataclass(frozen=True)
class Asked:
    """All of it. ``key`` is in no record and no message."""

    server: Server
    api: Api
    model: str | None
    prompts: list[Prompt]
    hold_prompt: Prompt | None
    """Asked with and without ``stop``; None for no such check."""
    stop: list[str]
    concurrency: int
    requests: int
    max_tokens: int
    limits: Limits
    seed: int
    compares: bool
    asks_ids: bool
    asks_logprobs: bool
    vocabulary: Vocabulary | None
    key: str | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not show in a message that the server repeats."""
        user = self.server.user or ""
        password = user.partition(":")[2]
        return tuple(filter(None, (self.key, password, _in_base64(user))))

    def headers(self) -> dict[str, str]:
        """What every request says beside its body."""
        said = {"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity"}
        if self.server.user is not None:
            said["Authorization"] = f"Basic {_in_base64(self.server.user)}"
        elif self.key:
            said["Authorization"] = f"Bearer {self.key}"
        return said


def _in_base64(text: str) -> str:
    return b64encode(text.encode()).decode()
