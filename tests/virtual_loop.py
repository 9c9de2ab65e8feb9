"""An event loop without waiting: its clock jumps to the next timer when nothing else is to do."""

import asyncio
import selectors
from concurrent.futures import Executor, Future


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self):
        super().__init__()
        self.now = 0.0

    def select(self, timeout=None):
        assert timeout is not None, "the loop would wait for ever"
        self.now += max(timeout, 0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.jumping = _JumpingSelector()
        super().__init__(self.jumping)

    def time(self):
        return self.jumping.now


class VirtualExecutor(Executor):
    """One worker whose calls take ``seconds(argument)`` of the loop's time, one after the other."""

    def __init__(self, loop, seconds=lambda: 0.0):
        self._loop = loop
        self._seconds = seconds
        self._free_at = 0.0

    def submit(self, function, /, *arguments):
        future = Future()
        self._free_at = max(self._free_at, self._loop.time()) + self._seconds()

        def run():
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except Exception as error:
                    future.set_exception(error)

        self._loop.call_at(self._free_at, run)
        return future


def run_virtually(make):
    """The result of the coroutine ``make(loop)``, on a virtual loop of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(make(loop))
    finally:
        loop.close()
