"""The work of a run on an event loop, which ends when it is done or when the run is to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from detokbench.live.counting import Counters, keep_time
from detokbench.live.worker import Control


async def work_until_stopped(work: Awaitable[None], counters: Counters, control: Control) -> None:
    """Do the work, and send samples of the counters meanwhile.

    Raises what the work or the sending raises. Where the run is to stop, the work is cancelled.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    control.on_stop(lambda: loop.call_soon_threadsafe(stopped.set))
    tasks = [
        asyncio.ensure_future(work),
        asyncio.create_task(keep_time(counters, lambda sample: control.send("sample", sample))),
        asyncio.create_task(stopped.wait()),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # raises what went wrong
    finally:
        control.on_stop(None)
        for task in tasks:
            task.cancel()
