"""Ctrl-C, SIGTERM and a closed terminal: the first ends the measuring, more do not lose the record.

What follows the first, settling the processes and keeping what was measured, takes seconds, and an
impatient second Ctrl-C would cost the whole record.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_DEAF_S = 10.0


def take_first_interrupt() -> None:
    """From now on the first of the signals raises KeyboardInterrupt, those that follow do nothing.

    After ten seconds one counts again, so that what hangs can be ended. A signal that is ignored,
    as under ``nohup``, stays so.
    """
    deaf_until = 0.0

    def take(_number: int, _frame: FrameType | None) -> None:
        nonlocal deaf_until
        if monotonic() >= deaf_until:
            deaf_until = monotonic() + _DEAF_S
            raise KeyboardInterrupt

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, take)


def ignore_interrupts() -> None:
    """For the end of the process: while Python winds up, a signal would decide the exit code."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Work that is not to be left half done; a signal that came meanwhile acts at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals act in the main thread alone
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
