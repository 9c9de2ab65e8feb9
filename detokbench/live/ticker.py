"""Events at absolute times, called on an event loop from a thread of their own.

They stand for messages of another process: they fall due whatever the loop is doing, and a loop
that was busy finds them all waiting. asyncio's own timers are of no use for it, since they wake up
to a millisecond late.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from time import perf_counter, sleep

_PR_SET_TIMERSLACK = 29
_SLACK_NS = 1000
_LONGEST_SLEEP_S = 0.05  # so that a closed ticker ends soon


class Ticker:
    """Calls ``callback(i)`` on the loop at ``start + times_s[i]``; rising times, in seconds.

    A context: leaving it ends the thread. ``done`` is set on the loop after the last call.
    """

    def __init__(self, start: float, times_s: Sequence[float], callback: Callable[[int], None]):
        self._loop = asyncio.get_running_loop()
        self._start = start
        self._times_s = times_s
        self._callback = callback
        self._stopped = False
        self.done = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Ticker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._thread.join()

    def _run(self) -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, _SLACK_NS)
        for number, time_s in enumerate(self._times_s):
            while not self._stopped and (left := self._start + time_s - perf_counter()) > 0:
                sleep(min(left, _LONGEST_SLEEP_S))
            if self._stopped:
                return
            self._loop.call_soon_threadsafe(self._callback, number)
        self._loop.call_soon_threadsafe(self.done.set)
