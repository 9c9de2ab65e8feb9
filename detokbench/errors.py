"""The one exception of this package and the exit codes it can carry."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell sees. 130 is a run ended by Ctrl-C, as shells count it."""

    OK = 0
    FAILED_CHECK = 1
    USAGE = 2
    INCONCLUSIVE = 3
    NOTHING_TO_COMPARE = 4
    BROKEN_SETUP = 5
    INTERRUPTED = 130


class DetokbenchError(Exception):
    """Something the user can act on: one line that says what is wrong and what to do.

    ``main`` catches it once, prints the line and exits with ``exit_code``.
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.BROKEN_SETUP) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def usage_error(message: str) -> DetokbenchError:
    """An option or a file of the user's that cannot be right (exit code 2)."""
    return DetokbenchError(message, ExitCode.USAGE)


def cannot_show(error: OSError) -> DetokbenchError:
    """What to say where standard output takes nothing: a full disk, a device that is gone."""
    return DetokbenchError(f"cannot write to standard output: {error.strerror or error}")
