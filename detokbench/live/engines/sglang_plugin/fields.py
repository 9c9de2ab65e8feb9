"""Messages built by field name, from the installed version's own classes.

SGLang's messages change between versions, as dataclasses first and as msgspec structures later.
A field that a class requires and that is not known here is an error that names it; one that it
does not have is left out; one with a default that is not known here keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any


class UnknownFieldsError(RuntimeError):
    """A class of the installed version wants fields that nobody here can fill."""


def fields_of(message_class: Any) -> dict[str, bool]:
    """Names of the fields of a dataclass or msgspec.Struct, and whether each is required."""
    if dataclasses.is_dataclass(message_class):
        return {
            field.name: field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
            for field in dataclasses.fields(message_class)
            if field.init
        }
    import msgspec

    return {field.name: field.required for field in msgspec.structs.fields(message_class)}


def known_fields(message_class: Any, known: Iterable[str], needed: Iterable[str] = ()) -> list[str]:
    """Those of ``known`` that the class has, in its order.

    Raises UnknownFieldsError where it requires others, or lacks one of ``needed``.
    """
    has = fields_of(message_class)
    known = set(known)
    name = message_class.__name__
    if unknown := [field for field, required in has.items() if required and field not in known]:
        raise UnknownFieldsError(f"{name} requires fields not known here: {', '.join(unknown)}")
    if missing := [field for field in needed if field not in has]:
        raise UnknownFieldsError(f"{name} has no field {', '.join(missing)}")
    return [field for field in has if field in known]


def built(message_class: Any, values: dict[str, Any]) -> Any:
    """An instance from those of ``values`` that the class has."""
    return message_class(**{name: values[name] for name in known_fields(message_class, values)})
