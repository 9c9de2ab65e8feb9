"""The temporary folder of a run, and the removal of those whose runs were killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR
from typing import IO

from detokbench.errors import DetokbenchError

_PREFIX = "detokbench-"
_LOCK = "in-use"


class RunFolder:
    """A folder for this user alone. It is locked until it is closed or its process ends.

    Making one removes those of this user that nothing locks any more: their process was killed.
    Raises DetokbenchError where there is no place for temporary files, or none that can be named.
    """

    def __init__(self) -> None:
        try:
            tempfile.gettempdir().encode()
            _remove_stale()
            self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
        except UnicodeEncodeError as error:
            raise DetokbenchError(
                "the folder for temporary files has a name that is not UTF-8; set TMPDIR to another"
            ) from error
        except OSError as error:
            raise DetokbenchError(
                f"no temporary folder can be made: {error.strerror}; set TMPDIR to another place"
            ) from error
        self.name = self._folder.name
        self._lock = _locked(Path(self.name))

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        self._folder.cleanup()
        self._lock.close()


def _locked(folder: Path) -> IO[bytes]:
    """The open file whose lock says that the folder is in use; it appears when it is locked."""
    making = folder / f"{_LOCK}.new"
    lock = making.open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    making.rename(folder / _LOCK)
    return lock


def _remove_stale() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another's, one being made or removed, or one in use
            facts = folder.lstat()
            if facts.st_uid == os.getuid() and S_ISDIR(facts.st_mode):
                with (folder / _LOCK).open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
