"""JSON of a stranger's: read without an exception of any other kind, however it is nested."""

from __future__ import annotations

from typing import Any

import msgspec


class NotJsonError(ValueError):
    """Bytes that are no JSON, or JSON nested so deeply that it cannot be read: one line."""


def read_json(data: bytes | str) -> Any:
    """The value that the data spells. Raises NotJsonError."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJsonError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise NotJsonError("JSON nested too deeply") from error


def json_of(value: Any) -> str:
    """A value as JSON; a string stays as it is."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "nested too deeply"
