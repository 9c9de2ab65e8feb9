"""Converted tokenizers are kept in the user's cache folder.

A file is written beside its final name and moved there in one step, so that two runs that start
together both find a whole file; a checksum beside it tells a damaged one, which is built again.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from detokbench.errors import DetokbenchError

CACHE_VARIABLE = "DETOKBENCH_CACHE"


def cache_folder() -> Path:
    """``$DETOKBENCH_CACHE``, or the platform's cache folder for this package."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("detokbench")


def cached_file(name: str, build: Callable[[], bytes]) -> Path:
    """The path of cache file ``name``, built by ``build`` when it is missing or damaged.

    ``name`` must change whenever the content would: put the source's checksum into it.
    Raises DetokbenchError (exit code 5) where the folder cannot be written.
    """
    path = cache_folder() / name
    checksum = path.with_name(path.name + ".sha256")
    if _is_whole(path, checksum):
        return path
    content = build()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        write_atomically(checksum, _digest(content).encode())
    except OSError as error:
        raise DetokbenchError(
            f"cannot write the cache folder {path.parent} ({error.strerror}); "
            f"name another one in {CACHE_VARIABLE}"
        ) from error
    return path


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` so that no reader ever sees half of it. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return _digest(path.read_bytes())


def _is_whole(path: Path, checksum: Path) -> bool:
    try:
        return checksum.read_bytes() == file_digest(path).encode()
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
