"""Prompts that arrive at an event loop, encoded in one of three ways.

*direct*: the loop itself calls the tokenizer, as SGLang does by default. *executor*: one call a
request in one thread beside the loop, as vLLM does (0.33, renderers/base.py). *micro-batch*:
SGLang's micro-batcher. A wait lasts from when the request was due to arrive until its ids are
there, so that a loop too busy to take a request in is counted as well.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from detokbench.live.encode_batcher import EncodeBatcher, Tokenizer
from detokbench.live.heartbeat import Heartbeat
from detokbench.live.ticker import Ticker

WAYS = ("direct", "executor", "micro-batch")
_HEAD_START_S = 0.02
Encode = Callable[[str], Awaitable[Any]]


@dataclass(frozen=True)
class Arrived:
    """What became of a stream of arrivals. Waits are in seconds, None for one not done in time."""

    waits_s: list[float | None]
    seconds: float
    """From the start to the last ids."""
    blocked_s: float
    calls: int
    encoded: int
    """Prompts in all calls."""
    cpu_s: float


def poisson_times(rate: float, duration_s: float, rng: random.Random) -> list[float]:
    """When requests arrive in ``duration_s`` at so many a second.

    A Poisson process given its number of arrivals, which is the expected one (one at least), so
    that a short stream offers the load that it is named by.
    """
    number = max(1, round(rate * duration_s))
    return sorted(rng.uniform(0.0, duration_s) for _ in range(number))


class _Counted:
    """A tokenizer whose calls are counted."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.calls = self.prompts = 0

    def __call__(self, texts: str | list[str], **options: Any) -> Any:
        self.calls += 1
        self.prompts += 1 if isinstance(texts, str) else len(texts)
        return self._tokenizer(texts, **options)


async def measure_arrivals(
    way: str,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    times_s: Sequence[float],
    drain_s: float,
    max_batch: int,
    wait_s: float,
) -> Arrived:
    """Let requests arrive at ``times_s``, with ``texts`` in turn, and wait for their ids.

    Those not done ``drain_s`` after the last arrival are given up.
    """
    counted = _Counted(tokenizer)
    if way == "direct":
        return await _stream(_direct(counted), counted, texts, times_s, drain_s)
    if way == "executor":
        with ThreadPoolExecutor(max_workers=1) as executor:
            encode = _in_executor(counted, executor)
            arrived = await _stream(encode, counted, texts, times_s, drain_s)
            executor.shutdown(cancel_futures=True)
        return arrived
    batcher = EncodeBatcher(counted, max_batch, wait_s)
    try:
        return await _stream(batcher.encode, counted, texts, times_s, drain_s)
    finally:
        await batcher.close()


def _direct(tokenizer: Tokenizer) -> Encode:
    async def encode(text: str) -> Any:
        return tokenizer(text)

    return encode


def _in_executor(tokenizer: Tokenizer, executor: ThreadPoolExecutor) -> Encode:
    async def encode(text: str) -> Any:
        return await asyncio.get_running_loop().run_in_executor(executor, tokenizer, text)

    return encode


async def _stream(
    encode: Encode,
    counted: _Counted,
    texts: Sequence[str],
    times_s: Sequence[float],
    drain_s: float,
) -> Arrived:
    await encode(texts[-1])  # threads are started and caches warm before the clock runs
    counted.calls = counted.prompts = 0
    loop = asyncio.get_running_loop()
    waits_s: list[float | None] = [None] * len(times_s)
    tasks: list[asyncio.Task[None]] = []
    start, cpu = perf_counter() + _HEAD_START_S, process_time()

    async def request(number: int) -> None:
        if perf_counter() - start > times_s[-1] + drain_s:
            return  # a loop in arrears comes to its timers only after all of these
        await encode(texts[number % len(texts)])
        waits_s[number] = perf_counter() - start - times_s[number]

    async with Heartbeat() as heartbeat:
        with Ticker(start, times_s, lambda i: tasks.append(loop.create_task(request(i)))) as ticker:
            await ticker.done.wait()
        await _finish(tasks, drain_s)
        calls, prompts = counted.calls, counted.prompts
    ends = [at + wait for at, wait in zip(times_s, waits_s, strict=True) if wait is not None]
    return Arrived(
        waits_s=waits_s,
        seconds=max(ends, default=times_s[-1] + drain_s),
        blocked_s=heartbeat.longest_s,
        calls=calls,
        encoded=prompts,
        cpu_s=process_time() - cpu,
    )


async def _finish(tasks: Sequence[asyncio.Task[None]], drain_s: float) -> None:
    """Wait for the requests; what raised is raised, what is not done in time is cancelled."""
    done, late = await asyncio.wait(tasks, timeout=drain_s)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late)
    for task in done:
        task.result()
