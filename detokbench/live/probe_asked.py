"""What a probe is to do: the server, the requests, and what is looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

from detokbench.errors import usage_error
from detokbench.live.probe_fetch import Limits
from detokbench.live.probe_prompts import Prompt
from detokbench.live.probe_secrets import in_base64, secrets_of
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

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """What must not show in a message that the server repeats."""
        return secrets_of(self.server, self.key)

    def headers(self) -> dict[str, str]:
        """What every request says beside its body."""
        said = {"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity"}
        if self.server.user is not None:
            said["Authorization"] = f"Basic {in_base64(self.server.user)}"
        elif self.key:
            said["Authorization"] = f"Bearer {self.key}"
        return said


def key_of(variable: str) -> str | None:
    """The key in a variable of the environment, if it is set. Raises DetokbenchError, exit code 2,
    without the key, where it can be no header's value.
    """
    key = os.environ.get(variable)
    if key is not None and not key.isprintable():
        raise usage_error(
            f"--api-key-env: the key in {variable} has a line end or another character that no "
            "header can hold"
        )
    return key
