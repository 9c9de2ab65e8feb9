"""How many files a process may have open: a stream is one."""

from __future__ import annotations

from detokbench.errors import usage_error

_ENOUGH = 1 << 16
_OTHER_FILES = 64
"""Room for what is open beside the streams."""


def allow_many_files() -> int:
    """Ask for as many as this user may have; the number that there now is."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def allow_streams(streams: int, option: str) -> None:
    """Make room for so many streams at a time.

    Raises DetokbenchError, exit code 2, naming the ``option``, where the system does not let it.
    """
    most = allow_many_files() - _OTHER_FILES
    if streams > most:
        raise usage_error(
            f"{option}: {streams:,} streams at a time are more than the {max(0, most):,} that the "
            "limit of open files leaves (ulimit -Hn)"
        )
