"""The engine installed beside us: found by import, named where it is absent or has changed.

Nothing here imports an engine until a path asks for a name of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from detokbench.errors import DetokbenchError

Engine = Literal["vllm", "sglang"]

TRIED: dict[Engine, tuple[str, ...]] = {"vllm": ("0.33.0",), "sglang": ("0.5.23",)}
"""The versions whose classes have been streamed through and compared with our paths."""

ENGINE_OF_PATH: dict[str, Engine] = {
    "vllm": "vllm",
    "vllm-slow": "vllm",
    "vllm-output": "vllm",
    "vllm-output-no-stats": "vllm",
    "vllm-output-stop": "vllm",
    "sglang": "sglang",
    "sglang-rows": "sglang",
}
"""By the name of the entry point, so that listing paths imports none of them."""


def installed_version(engine: Engine) -> str | None:
    """The version of an engine that can be imported here; None where it is not installed.

    A module of its name without a version is none: SGLang puts a stub called ``vllm`` in place.
    """
    try:
        return version(engine)
    except PackageNotFoundError:
        found = getattr(sys.modules.get(engine), "__version__", None)
        return None if found is None else str(found)


def why_absent(engine: Engine) -> str | None:
    """Why an engine cannot be measured in this environment; None where it is installed."""
    if installed_version(engine) is None:
        return f"{engine} is not installed in this environment"
    return None


def can_run_here(path: str) -> bool:
    """Whether a path needs no engine, or the engine that it needs is installed."""
    engine = ENGINE_OF_PATH.get(path)
    return engine is None or installed_version(engine) is not None


def named(engine: Engine) -> str:
    """The engine with its version, and whether that version has been tried."""
    found = installed_version(engine)
    tried = TRIED[engine]
    if found in tried:
        return f"{engine} {found}"
    return f"{engine} {found} (tried: {', '.join(tried)})"


def find(engine: Engine, module: str, name: str) -> Any:
    """An attribute of a module of the engine.

    Raises DetokbenchError that says what is missing: the engine, the module or the attribute.
    """
    absent = why_absent(engine)
    if absent is not None:
        raise DetokbenchError(absent)
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module + ".").startswith(error.name + "."):
            raise DetokbenchError(f"{named(engine)} has no module {error.name}") from error
        raise DetokbenchError(
            f"{named(engine)} cannot be imported: it needs the module {error.name}"
        ) from error
    except Exception as error:
        why = " ".join(str(error).split())
        raise DetokbenchError(
            f"{named(engine)} cannot be imported: {type(error).__name__}: {why}"
        ) from error
    try:
        return getattr(found, name)
    except AttributeError as error:
        raise DetokbenchError(f"{named(engine)} has no {module}.{name}") from error


@contextmanager
def built_upon(engine: Engine, what: str) -> Iterator[None]:
    """Say what about the engine is another than expected, where using it fails for that reason.

    ``what`` names the class or the function. Other errors go through.
    """
    try:
        yield
    except (AttributeError, TypeError) as error:
        why = " ".join(str(error).split())
        raise DetokbenchError(
            f"{what} of {named(engine)} is not what this path is built upon: {why}"
        ) from error
