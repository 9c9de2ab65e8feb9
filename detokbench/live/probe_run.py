"""A whole probe: find out how the server is spoken to, load it, then ask what needs quiet."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from detokbench.bench.machine import machine_facts
from detokbench.errors import DetokbenchError
from detokbench.live.openai_stream import NotAFrameError, whole_text
from detokbench.live.probe_checks import compare_texts, curve_of, hold_back
from detokbench.live.probe_dialect import Dialect, learn
from detokbench.live.probe_fetch import Limits, Raw, fetch_stream
from detokbench.live.probe_judge import Judged, judge
from detokbench.live.probe_load import Load, Looks, looked_at, run_load
from detokbench.live.probe_prompts import Prompt
from detokbench.live.probe_url import Api, Server
from detokbench.records.probe import Comparison, HoldBack
from detokbench.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from aiohttp import ClientSession

MOST_COMPARED = 8
HOLD_REPEATS = 3
_MOST_MODELS_BYTES = 4 << 20


@dataclass(frozen=True)
class Asked:
    """What a probe is to do. ``key`` is in no record and no message."""

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
        password = self.server.user.partition(":")[2] if self.server.user else ""
        return tuple(filter(None, (self.key, password)))

    def headers(self) -> dict[str, str]:
        """What every request says beside its body."""
        said = {"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity"}
        if self.server.user is not None:
            said["Authorization"] = f"Basic {b64encode(self.server.user.encode()).decode()}"
        elif self.key:
            said["Authorization"] = f"Bearer {self.key}"
        return said


@dataclass
class Collected:
    """What has been found so far, and what ended the run early, if anything did."""

    dialect: Dialect
    load: Load
    looks: Looks = field(default_factory=Looks)
    hold: HoldBack | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    machine: dict[str, object] = field(default_factory=machine_facts)
    """As it was before the load."""
    error: BaseException | None = None


def run_probe(asked: Asked, progress: Callable[[str, float], None]) -> Collected:
    """Run all of it; Ctrl-C keeps what there is.

    Raises DetokbenchError, exit code 5, where no connection can be made at the start.
    """
    dialect = Dialect(asked.api, asked.model, asked.seed, asked.asks_ids, asked.asks_logprobs)
    load = Load(lambda raw: judge(raw, asked.vocabulary, asked.secrets))
    collected = Collected(dialect, load)
    try:
        asyncio.run(_run(asked, collected, progress))
    except KeyboardInterrupt as stop:
        collected.error = stop
    return collected


async def _run(asked: Asked, collected: Collected, progress: Callable[[str, float], None]) -> None:
    import aiohttp

    connections = aiohttp.TCPConnector(limit=asked.concurrency + 2)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connections, timeout=timeout, headers=asked.headers(),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:  # fmt: skip
        run = _Run(asked, collected, session)
        await run.find_model()
        await run.learn()
        async with looked_at(session, asked.server.metrics, collected.looks):
            await run_load(
                collected.load, asked.prompts, asked.requests, asked.concurrency,
                run.stream, progress,
            )  # fmt: skip
        await run.hold_back(progress)
        await run.compare(progress)


@dataclass
class _Run:
    """The parts of a probe, on one session."""

    asked: Asked
    collected: Collected
    session: ClientSession

    async def stream(self, prompt: Prompt, stop: list[str] | None = None) -> Raw:
        """One streamed request."""
        body = self.collected.dialect.body(prompt, self.asked.max_tokens, stream=True, stop=stop)
        return await self._fetch(body, prompt.name)

    async def _fetch(self, body: dict[str, object], name: str) -> Raw:
        return await fetch_stream(
            self.session, self.asked.server.completions, body, name, self.asked.limits
        )

    async def find_model(self) -> None:
        """The first model that the server lists, where none was asked for."""
        if self.asked.model is not None:
            return
        import aiohttp

        try:
            async with (
                asyncio.timeout(self.asked.limits.seconds),
                self.session.get(self.asked.server.models) as response,
            ):
                page = await response.content.read(_MOST_MODELS_BYTES)
            self.collected.dialect.model = str(msgspec.json.decode(page)["data"][0]["id"])
        except aiohttp.ClientConnectorError as error:
            raise _no_connection(self.asked, str(error.os_error.strerror or "")) from error
        except (
            aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError, LookupError, TypeError,
        ):  # fmt: skip
            self.collected.warnings.append(
                "the server lists no model, so requests name none; --model gives it"
            )

    async def learn(self) -> None:
        """Find out which fields it takes; the request also warms the server up."""

        async def ask(body: dict[str, object]) -> Raw:
            return await self._fetch(body, "warm-up")

        raw = await learn(self.collected.dialect, self.asked.prompts[0], ask)
        if raw.ended == "refused":
            raise _no_connection(self.asked, raw.why)

    async def hold_back(self, progress: Callable[[str, float], None]) -> None:
        """The same request with stops and without, in turn, nothing else running."""
        prompt = self.asked.hold_prompt
        if prompt is None:
            return
        with_stop: list[Judged] = []
        without: list[Judged] = []
        for number in range(HOLD_REPEATS):
            without.append(self._judge(await self.stream(prompt)))
            with_stop.append(self._judge(await self.stream(prompt, self.asked.stop)))
            progress("stop strings", (number + 1) / HOLD_REPEATS)
            failed = next((e for e in (without[-1], with_stop[-1]) if not e.is_measured), None)
            if failed is not None:
                note = f"no hold-back: a request ended as {failed.outcome} {failed.note}".strip()
                self.collected.warnings.append(note)
                return
        self.collected.hold = hold_back(
            self.asked.stop,
            prompt.name,
            *([curve_of(e.answer, e.raw.sent_s) for e in runs] for runs in (with_stop, without)),
        )

    async def compare(self, progress: Callable[[str, float], None]) -> None:
        """Each prompt streamed once and answered twice without a stream."""
        if not self.asked.compares:
            return
        prompts = self.asked.prompts[:MOST_COMPARED]
        for number, prompt in enumerate(prompts, 1):
            self.collected.comparisons.append(await self._compare_one(prompt))
            progress("comparing", number / len(prompts))

    async def _compare_one(self, prompt: Prompt) -> Comparison:
        streamed = self._judge(await self.stream(prompt))
        if not streamed.is_measured:
            note = f"the stream ended as {streamed.outcome} {streamed.note}".strip()
            return Comparison(prompt=prompt.name, verdict="failed", note=note)
        body = self.collected.dialect.body(prompt, self.asked.max_tokens, stream=False)
        try:
            texts = [self._whole(await self._fetch(body, prompt.name)) for _ in range(2)]
        except NotAFrameError as error:
            return Comparison(prompt=prompt.name, verdict="failed", note=str(error))
        return compare_texts(prompt.name, streamed.text, *texts)

    def _judge(self, raw: Raw) -> Judged:
        return judge(raw, None, self.asked.secrets)

    def _whole(self, raw: Raw) -> str:
        if raw.status == 200 and raw.ended == "end" and raw.content_type == "application/json":
            try:
                return whole_text(msgspec.json.decode(raw.reads[0][1]))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise NotAFrameError(f"the answer without a stream is not JSON: {error}") from error
        judged = self._judge(raw)
        raise NotAFrameError(f"without a stream: {judged.outcome} {judged.note}".strip())


def _no_connection(asked: Asked, why: str) -> DetokbenchError:
    return DetokbenchError(
        f"cannot connect to {asked.server.origin}{f': {why}' if why else ''}; is a server there?"
    )
