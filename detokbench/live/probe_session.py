"""The server of a probe, spoken to over one session: its model, the fields it takes, answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detokbench.errors import DetokbenchError
from detokbench.live.json_text import NotJsonError, read_json
from detokbench.live.openai_stream import NotAFrameError, whole_text
from detokbench.live.probe_asked import Asked
from detokbench.live.probe_dialect import Dialect, learn
from detokbench.live.probe_fetch import Raw, fetch_stream, read_at_most
from detokbench.live.probe_judge import Judged, judge
from detokbench.live.probe_prompts import Prompt

if TYPE_CHECKING:
    from aiohttp import ClientSession

_MOST_MODELS_BYTES = 4 << 20


@dataclass
class ProbeSession:
    """One session; ``dialect`` is filled by ``find_model`` and ``learn``."""

    asked: Asked
    dialect: Dialect
    session: ClientSession

    async def find_model(self) -> bool:
        """Take the first model that the server lists by a name. Returns whether it lists one.

        Raises DetokbenchError where no connection can be made.
        """
        import aiohttp

        try:
            async with (
                asyncio.timeout(self.asked.limits.seconds),
                self.session.get(self.asked.server.models) as response,
            ):
                page = await read_at_most(response, _MOST_MODELS_BYTES)
                listed = read_json(page)["data"] if response.status == 200 else []
            names = (entry.get("id") for entry in listed if isinstance(entry, dict))
            self.dialect.model = next(name for name in names if name and isinstance(name, str))
        except aiohttp.ClientConnectorError as error:
            raise self._no_connection(str(error.os_error.strerror or "")) from error
        except (
            aiohttp.ClientError, OSError, ValueError, LookupError, TypeError, StopIteration,
        ):  # fmt: skip
            return False
        return True

    async def learn(self) -> None:
        """Find out which fields it takes; the request also warms the server up.

        Raises DetokbenchError where no connection can be made.
        """

        async def ask(body: dict[str, Any]) -> Raw:
            return await self._fetch(body, "warm-up")

        raw = await learn(self.dialect, self.asked.prompts[0], ask)
        if raw.ended == "refused":
            raise self._no_connection(raw.why)

    async def stream(self, prompt: Prompt, stop: list[str] | None = None) -> Raw:
        """One streamed request, not yet parsed."""
        body = self.dialect.body(prompt, self.asked.max_tokens, stream=True, stop=stop)
        return await self._fetch(body, prompt.name)

    async def judged_stream(self, prompt: Prompt, stop: list[str] | None = None) -> Judged:
        """One streamed request and its outcome; its tokens are not counted by the tokenizer."""
        return self._judge(await self.stream(prompt, stop))

    async def whole_text(self, prompt: Prompt) -> str:
        """The text of an answer without a stream. Raises NotAFrameError where it has none."""
        body = self.dialect.body(prompt, self.asked.max_tokens, stream=False)
        raw = await self._fetch(body, prompt.name)
        if raw.status == 200 and raw.ended == "end" and raw.content_type == "application/json":
            try:
                return whole_text(read_json(raw.reads[0][1]))
            except NotJsonError as error:
                raise NotAFrameError(f"the answer without a stream: {error}") from error
        judged = self._judge(raw)
        raise NotAFrameError(f"without a stream: {judged.outcome} {judged.note}".strip())

    async def _fetch(self, body: dict[str, Any], name: str) -> Raw:
        return await fetch_stream(
            self.session, self.asked.server.completions, body, name, self.asked.limits
        )

    def _judge(self, raw: Raw) -> Judged:
        return judge(raw, None, self.asked.secrets)

    def _no_connection(self, why: str) -> DetokbenchError:
        origin = self.asked.server.origin
        return DetokbenchError(
            f"cannot connect to {origin}{f': {why}' if why else ''}; is a server there?"
        )
