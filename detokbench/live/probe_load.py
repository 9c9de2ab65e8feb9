"""The load: so many requests, so many at a time, over one session; and looks at the metrics page.

Streams are parsed when all have ended, so that parsing one never delays the stamps of another,
unless they take too much memory by then.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter, process_time
from typing import TYPE_CHECKING

from detokbench.live.metrics_page import load_point
from detokbench.live.probe_fetch import Raw, read_at_most
from detokbench.live.probe_judge import Judged
from detokbench.live.probe_kept import Kept, keep
from detokbench.live.probe_prompts import Prompt
from detokbench.records.probe import ClientFacts, LoadPoint
from detokbench.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from aiohttp import ClientSession

BOUND_SHARE = 0.8
"""Of a core: a client that used more may have been what was measured."""
_MOST_KEPT_BYTES = 256 << 20
_POLL_S = 1.0
_PAGE_TIMEOUT_S = 5.0
_MOST_PAGE_BYTES = 8 << 20


@dataclass
class Load:
    """What the load has brought so far; kept where it is interrupted."""

    judge: Callable[[Raw], Judged]
    vocabulary: Vocabulary | None = None
    """What ids are checked by."""
    secrets: tuple[str, ...] = ()
    judged: list[Kept] = field(default_factory=list)
    client: ClientFacts | None = None
    took_s: tuple[float, float] = (0.0, 0.0)
    """CPU seconds of this process and seconds from the first request to the end of the last."""
    _raws: deque[Raw] = field(default_factory=deque)
    _kept_bytes: int = 0
    _parsed_late: bool = True

    def add(self, raw: Raw) -> None:
        """Keep a request for later, or judge it now where too much is kept."""
        if self._kept_bytes + raw.kept_bytes <= _MOST_KEPT_BYTES:
            self._kept_bytes += raw.kept_bytes
            self._raws.append(raw)
        else:
            self._parsed_late = False
            self._judge(raw)

    def finish(self, cpu_s: float, wall_s: float) -> None:
        """Judge what is left, and keep what the client took.

        What is judged when Ctrl-C comes stays; the rest is dropped.
        """
        share = cpu_s / wall_s if wall_s > 0 else 0.0
        self.client = ClientFacts(
            cpu_share=share,
            is_bound=share > BOUND_SHARE,
            wall_s=wall_s,
            parsed_late=self._parsed_late,
        )
        try:
            while self._raws:
                self._judge(self._raws.popleft())
        finally:
            self._raws.clear()
            self.judged.sort(key=lambda entry: entry.sent_s)

    def _judge(self, raw: Raw) -> None:
        self.judged.append(keep(self.judge(raw), self.vocabulary, self.secrets))


async def run_load(
    load: Load,
    prompts: Sequence[Prompt],
    requests: int,
    concurrency: int,
    ask: Callable[[Prompt], Awaitable[Raw]],
    progress: Callable[[str, float], None],
) -> None:
    """Send so many requests, each worker the next when its last has ended; prompts take turns.

    ``load.finish`` is left to do, outside of the loop, in which Ctrl-C would not reach it.
    """
    numbers = count()

    async def work() -> None:
        while (number := next(numbers)) < requests:
            load.add(await ask(prompts[number % len(prompts)]))
            progress("requests", (number + 1) / requests)

    with _collector_off():
        cpu_s, wall_s = process_time(), perf_counter()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(concurrency, requests)):
                    group.create_task(work())
        finally:
            load.took_s = process_time() - cpu_s, perf_counter() - wall_s


@contextmanager
def _collector_off() -> Iterator[None]:
    """A collection would stop all streams at once for as long as it takes."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass
class Looks:
    """What the metrics page said, look by look; ``engine`` is empty where there is no such page."""

    engine: str = ""
    points: list[LoadPoint] = field(default_factory=list)

    async def look(self, session: ClientSession, url: str, since_s: float) -> bool:
        """Read the page once. Returns whether there is one of a known engine; raises nothing."""
        try:
            async with asyncio.timeout(_PAGE_TIMEOUT_S), session.get(url) as response:
                if response.status != 200:
                    return False
                page = (await read_at_most(response, _MOST_PAGE_BYTES)).decode("utf-8", "replace")
        except Exception:  # whatever it is, the page is not there
            return False
        found = load_point(page, perf_counter() - since_s)
        if found is None:
            return False
        self.engine, point = found
        self.points.append(point)
        return True


@asynccontextmanager
async def looked_at(session: ClientSession, url: str, looks: Looks) -> AsyncIterator[None]:
    """Look at the page before, every second within, and after the block, if there is one."""
    since_s = perf_counter()
    if not await looks.look(session, url, since_s):
        yield
        return

    async def keep_looking() -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            await looks.look(session, url, since_s)

    looking = asyncio.create_task(keep_looking())
    try:
        yield
    finally:
        looking.cancel()
        await looks.look(session, url, since_s)
