"""CPU time of a front end's processes and threads by role, in ns.

A whole process: its CPU clock, which counts the threads that have ended too. Threads by name:
``/proc/PID/task/*/schedstat``, whose first number is the time on a CPU in ns. Elsewhere than on
Linux psutil is asked, whose clock ticks are 10 ms as a rule.

A thread that ends takes what it used since the last look with it, so a meter looks now and then;
threads without a name in any role get what is left of their process, and so what such a one used.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from detokbench.live.engines.front_end import Process, Role, Threads

Roles = Mapping[str, Sequence[Role]]
_IS_LINUX = sys.platform == "linux"


class CpuMeter:
    """What each role has used since the meter was made: ``used_ns``, as of the last look.

    Processes and threads that begin later count from their own beginning; those that have ended
    keep what they had used by the look before.
    """

    def __init__(self, roles: Callable[[], Roles]) -> None:
        """``roles`` is asked at every look: processes may come and go."""
        self._roles = roles
        self._before: dict[tuple[int, int], int] = {}
        self.used_ns: dict[str, int] = {}
        self._see(first=True)

    def look(self) -> dict[str, int]:
        """Take in what was used since the last look; the totals by role."""
        self._see(first=False)
        return dict(self.used_ns)

    def _see(self, first: bool) -> None:
        for role, key, total_ns in _read(self._roles()):
            before = self._before.get(key, total_ns if first else 0)
            self._before[key] = max(total_ns, before)
            self.used_ns[role] = self.used_ns.get(role, 0) + max(total_ns - before, 0)


def _read(roles: Roles) -> Iterator[tuple[str, tuple[int, int], int]]:
    """(role, what, ns) for each process and thread; ``what`` is (pid, thread id), 0 for no one."""
    named = _prefixes_by_process(roles)
    for role, parts in roles.items():
        for part in parts:
            if isinstance(part, Process):
                total = process_cpu_ns(part.pid)
                if total is not None:
                    yield role, (part.pid, 0), total
            elif part.name_prefixes:
                for tid, name, used in thread_cpu_ns(part.pid):
                    if name.startswith(part.name_prefixes):
                        yield role, (part.pid, tid), used
            else:
                left = _left_over(part.pid, named.get(part.pid, ()))
                if left is not None:
                    yield role, (part.pid, 0), left


def _prefixes_by_process(roles: Roles) -> dict[int, tuple[str, ...]]:
    named: dict[int, tuple[str, ...]] = {}
    for parts in roles.values():
        for part in parts:
            if isinstance(part, Threads):
                named[part.pid] = named.get(part.pid, ()) + part.name_prefixes
    return named


def _left_over(pid: int, named: tuple[str, ...]) -> int | None:
    """What a process has used but for its threads with these names."""
    threads = list(thread_cpu_ns(pid))  # first: else a thread's share could be taken twice
    total = process_cpu_ns(pid)
    if total is None:
        return None
    return total - sum(used for _, name, used in threads if named and name.startswith(named))


def process_cpu_ns(pid: int) -> int | None:
    """CPU time of a process and all threads that it ever had; None where there is none."""
    if _IS_LINUX:
        # clock_getcpuclockid(3): the process's number inverted, and CPUCLOCK_SCHED.
        with suppress(OSError):
            return time.clock_gettime_ns((~pid << 3) | 2)
        return None
    import psutil

    with suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return int((times.user + times.system) * 1e9)
    return None


def thread_cpu_ns(pid: int) -> Iterator[tuple[int, str, int]]:
    """(thread id, name, ns on a CPU) of each thread there is now; nothing for no process.

    Only Linux names the threads of other processes: elsewhere names are empty.
    """
    if not _IS_LINUX:
        yield from _threads_by_psutil(pid)
        return
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for task in tasks:
        with suppress(OSError, ValueError, IndexError):
            name = (task / "comm").read_text().rstrip("\n")
            yield int(task.name), name, int((task / "schedstat").read_text().split()[0])


def _threads_by_psutil(pid: int) -> Iterator[tuple[int, str, int]]:
    import psutil

    with suppress(psutil.Error):
        for thread in psutil.Process(pid).threads():
            yield thread.id, "", round((thread.user_time + thread.system_time) * 1e9)
