"""A whole probe: find out how the server is spoken to, load it, then ask what needs quiet."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from detokbench.bench.machine import machine_facts
from detokbench.live.probe_asked import Asked
from detokbench.live.probe_dialect import Dialect
from detokbench.live.probe_judge import judge
from detokbench.live.probe_load import Load, Looks, looked_at, run_load
from detokbench.live.probe_quiet import (
    MOST_COMPARED,
    Progress,
    ask_with_stops,
    ask_without_stream,
)
from detokbench.live.probe_session import ProbeSession
from detokbench.records.probe import Comparison, HoldBack


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


def run_probe(asked: Asked, progress: Progress) -> Collected:
    """Run all of it; Ctrl-C keeps what there is.

    Raises DetokbenchError, exit code 5, where no connection can be made at the start.
    """
    dialect = Dialect(asked.api, asked.model, asked.seed, asked.asks_ids, asked.asks_logprobs)
    load = Load(
        lambda raw: judge(raw, asked.vocabulary, asked.secrets), asked.vocabulary, asked.secrets
    )
    collected = Collected(dialect, load)
    try:
        asyncio.run(_run(asked, collected, progress))
    except KeyboardInterrupt as stop:
        collected.error = stop
    try:
        load.finish(*load.took_s)
    except KeyboardInterrupt as stop:
        collected.error = stop
    return collected


async def _run(asked: Asked, collected: Collected, progress: Progress) -> None:
    import aiohttp

    # A connection for each request: TTFT has connecting in it, and a server that closes one after
    # its answer, unannounced, cannot fail the next request.
    connections = aiohttp.TCPConnector(limit=asked.concurrency + 2, force_close=True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connections, timeout=timeout, headers=asked.headers(),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:  # fmt: skip
        server = ProbeSession(asked, collected.dialect, session)
        if asked.model is None and not await server.find_model():
            collected.warnings.append(
                "the server lists no model, so requests name none; --model gives it"
            )
        await server.learn()
        async with looked_at(session, asked.server.metrics, collected.looks):
            await run_load(
                collected.load, asked.prompts, asked.requests, asked.concurrency,
                server.stream, progress,
            )  # fmt: skip
        await _in_quiet(server, collected, progress)


async def _in_quiet(server: ProbeSession, collected: Collected, progress: Progress) -> None:
    asked = server.asked
    if asked.hold_prompt is not None:
        found = await ask_with_stops(server, asked.hold_prompt, asked.stop, progress)
        if isinstance(found, str):
            collected.warnings.append(found)
        else:
            collected.hold = found
    prompts = asked.prompts[:MOST_COMPARED] if asked.compares else []
    for number, prompt in enumerate(prompts, 1):
        collected.comparisons.append(await ask_without_stream(server, prompt))
        progress("comparing", number / len(prompts))
