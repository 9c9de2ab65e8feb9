"""Ctrl-C ends a run once: what it has started is then ended in peace, and what it has is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def one_interrupt() -> Iterator[None]:
    """The first signal to end raises KeyboardInterrupt; later ones within the context do nothing.

    Servers get seconds to end, in which a second Ctrl-C, or ``timeout``, which signals twice,
    would leave them running and lose the record. Signals that are ignored stay so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt)
        for number in _SIGNALS
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
