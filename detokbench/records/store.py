"""Records on disk: written whole or not at all, and never over another file."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from detokbench.errors import DetokbenchError, usage_error
from detokbench.records.schema import SCHEMA_VERSION, Record

DEFAULT_FOLDER = Path("results")
_MOST_NAME_BYTES = 200  # of the 255 there are: a number, an ending and a temporary name are added
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def place_for(record_kind: str, vocabulary: str, created: str, out: str | None) -> Path:
    """Where a record will go: ``--out`` (a ``.json`` file or a folder), or ``results/``.

    Made before anything is measured. Raises DetokbenchError: exit code 2 for a file that is
    there already and for a name that is too long, 5 for a folder that cannot be written.
    """
    _check_length(out or "")
    if out is not None and out.endswith(".json"):
        path = Path(out)
        if path.exists():
            raise usage_error(f"--out: {out} exists already; results are never overwritten")
    else:
        stamp = re.sub(r"[^0-9TZ]", "", created)
        most = _MOST_NAME_BYTES - len(f"{record_kind}--{stamp}.json".encode())
        named = vocabulary.encode()[:most].decode(errors="ignore")
        stem = re.sub(r"[^\w.-]+", "-", f"{record_kind}-{named}-{stamp}")
        path = (Path(out) if out is not None else DEFAULT_FOLDER) / f"{stem}.json"
    check_writable(path.parent)
    return path


def _check_length(out: str) -> None:
    """Refuse a name that a record, or what lies beside it, could not have."""
    if any(len(os.fsencode(part)) > _MOST_NAME_BYTES for part in Path(out).parts):
        raise usage_error(f"--out: a name in it has more than {_MOST_NAME_BYTES} bytes")


def check_writable(folder: Path) -> None:
    """Make a folder where there is none. Raises DetokbenchError, exit code 5, for no access."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DetokbenchError(
            f"cannot write results to {folder} ({_why(error)}); name another place with --out"
        ) from error


def chart_places(records: Sequence[Path], folder: Path | None) -> list[Path]:
    """Where the chart of each record goes: its own path, or its name in another folder.

    Raises DetokbenchError: exit code 2 where two charts would be one file, 5 where a folder cannot
    be written.
    """
    places = [path if folder is None else folder / path.name for path in records]
    stems = [place.with_suffix("") for place in places]
    for number, stem in enumerate(stems):
        if stem in stems[:number] and records[number] not in records[:number]:
            raise usage_error(f"--out: several records are named {stem.name}; plot them apart")
    for parent in dict.fromkeys(place.parent for place in places):
        check_writable(parent)
    return places


def page_place(out: str) -> Path:
    """Where a page will go. Raises DetokbenchError: 2 for a file that is there, 5 for no access."""
    _check_length(out)
    path = Path(out)
    if path.exists():
        raise _taken(path)
    check_writable(path.parent)
    return path


def write_page(path: Path, page: str) -> None:
    """Store a page. Raises DetokbenchError, exit code 2, rather than replace a file."""
    try:
        write_new(path, page.encode())
    except FileExistsError as error:
        raise _taken(path) from error


def _taken(path: Path) -> DetokbenchError:
    return usage_error(f"--out: {path} exists already; pages are never overwritten")


def _why(error: OSError) -> str:
    return "it is a file" if isinstance(error, FileExistsError) else str(error.strerror)


def write_record(record: Record, wanted: Path) -> Path:
    """Store a record; where ``wanted`` exists a number is added. Returns the path used.

    Raises DetokbenchError (exit code 5) where it cannot be written.
    """
    return write_beside(encode(record), wanted)


def write_beside(content: bytes, wanted: Path) -> Path:
    """Write a file under this name or, where it is taken, one with a number. Returns the path."""
    for path in _free_names(wanted):
        try:
            write_new(path, content)
        except FileExistsError:
            continue
        except OSError as error:
            raise DetokbenchError(f"cannot write {wanted.name}: {error.strerror}") from error
        return path
    raise AssertionError("unreachable: names never run out")


def encode(record: Record) -> bytes:
    """A record as JSON, an entry of each list a line, so that a diff of two records can be read."""
    fields = msgspec.to_builtins(record)
    lines = [f'"{key}":{_encode_field(value)}' for key, value in fields.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _encode_field(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(_json, value)) + "\n]"
    return _json(value)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _free_names(wanted: Path) -> Iterator[Path]:
    yield wanted
    number = 2
    while True:
        yield wanted.with_stem(f"{wanted.stem}-{number}")
        number += 1


def write_new(path: Path, content: bytes) -> None:
    """Write a file in one step. Raises FileExistsError rather than replace one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        os.link(temporary, path)  # unlike a rename, it fails where the name is taken
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write_exclusively(path, content)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _write_exclusively(path: Path, content: bytes) -> None:
    """The same on a file system without links; there a reader may see half of it for a moment."""
    with path.open("xb") as file:
        try:
            file.write(content)
        except OSError:
            path.unlink()
            raise


def read_record(path: Path) -> Record:
    """Load a record. Raises DetokbenchError, exit code 2: not a record, or of a newer schema."""
    try:
        content = path.read_bytes()
        version = msgspec.json.decode(content, type=_Versioned).schema_version
        if version > SCHEMA_VERSION:
            raise usage_error(
                f"{path.name} has schema {version}, this detokbench reads up to "
                f"{SCHEMA_VERSION}; install a newer one"
            )
        return msgspec.json.decode(content, type=Record)
    except OSError as error:
        raise usage_error(f"cannot read the record {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise usage_error(f"{path.name} is not a detokbench record: {error}") from error


class _Versioned(msgspec.Struct):
    schema_version: int
