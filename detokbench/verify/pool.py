"""Worker processes for tasks that answer once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context
from typing import TypeVar

from detokbench.bench.machine import usable_cpus
from detokbench.errors import DetokbenchError

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")


@contextmanager
def worker_pool(jobs: int | None) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes, one for each usable CPU unless ``jobs`` says how many.

    Left by an exception, it ends what is running. Ctrl-C is the parent's to handle.
    """
    pool = ProcessPoolExecutor(
        max_workers=jobs or len(usable_cpus()),
        mp_context=get_context("spawn"),  # tokenizers has threads, which a fork would lose
        initializer=_leave_standard_output,
    )
    try:
        yield pool
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _leave_standard_output() -> None:
    """What a path prints must not lie among the record or the screen of the parent."""
    with suppress(OSError):  # nothing to do where standard error is closed
        os.dup2(2, 1)


def answers(
    pool: ProcessPoolExecutor, work: Callable[[_Task], _Answer], tasks: Iterable[_Task]
) -> Iterator[tuple[_Task, _Answer]]:
    """Each task with its answer, as they come.

    Raises DetokbenchError where a worker process died, or a task would have ended it.
    """
    with _interrupts_ignored():
        futures = {pool.submit(work, task): task for task in tasks}
    for future in as_completed(futures):
        try:
            yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise DetokbenchError(
                f"a worker process died, perhaps in {futures[future]}; check the paths one at a "
                "time to see which of them does it"
            ) from error
        except SystemExit as error:
            raise DetokbenchError(f"a path ends the process, in {futures[future]}") from error


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that are started meanwhile ignore Ctrl-C from their first moment on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
