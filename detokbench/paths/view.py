"""What a path holds of a row between two steps, for whoever looks on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class RowView:
    """One row, seen from outside.

    ``window`` are the ids that the next decode starts from, before any new ones: None for a path
    that decodes no window. ``offsets`` are the path's own, by its own names. ``held`` is what has
    come in and not gone out: text as a decode gives it, or bytes; empty where nothing is held,
    None where that cannot be told. ``is_modelled`` marks a view of state that the path cannot see
    itself.
    """

    window: Sequence[Any] | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)
    held: str | bytes | None = None
    is_modelled: bool = False


@runtime_checkable
class Viewable(Protocol):
    """A path that lets one look; paths need not."""

    def look(self, row: int) -> RowView:
        """The state of an open row. May decode; changes nothing that a step could notice."""
