"""What a ``frontend`` command is to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from detokbench.errors import DetokbenchError, usage_error
from detokbench.tstep.curves import Deployment
from detokbench.workload.scenario import Scenario

NEEDED_AT = (64, 128, 256, 512)
"""Batches for which the number of front ends is worked out."""


@dataclass(frozen=True)
class Effort:
    """Seconds of the runs of the grid and of the search; ``width``: where the search ends."""

    warm_up_s: float
    window_s: float
    search_warm_up_s: float
    search_window_s: float
    width: float
    shortest_s: float = 0.25e-3
    longest_s: float = 0.2


DEFAULT = Effort(1.0, 4.0, 0.6, 2.4, 0.06)
QUICK = Effort(0.5, 1.5, 0.4, 1.0, 0.25)


@dataclass(frozen=True)
class Asked:
    """All of it. ``pythons`` has the interpreter of each engine."""

    engines: Sequence[str]
    pythons: dict[str, Path]
    model: Path
    scenario: Scenario
    text_folder: Path
    streams: Sequence[int]
    t_steps_s: Sequence[float]
    max_tokens: int
    prompt_len: int
    front_ends: int
    stop: list[str]
    chat: bool
    logprobs: int | None
    reasoning_parser: str | None
    tool_call_parser: str | None
    deployment: Deployment
    contexts: Sequence[int]
    effort: Effort
    search: bool
    seed: int
    trust_remote_code: bool
    ready_timeout_s: float


def engine_pythons(engines: Sequence[str], given: str | None, default: Path) -> dict[str, Path]:
    """The interpreter of each engine: one for all, or ``vllm=PATH,sglang=PATH``.

    ``vllm`` stands for ``vllm-rs`` too unless that is named. A folder is that of an environment.
    Raises DetokbenchError: exit code 2 for an engine not asked for, 5 for no interpreter there.
    """
    if given is None:
        return dict.fromkeys(engines, default)
    if "=" not in given:
        return dict.fromkeys(engines, _interpreter(given))
    found: dict[str, Path] = {}
    for part in given.split(","):
        name, _, path = part.partition("=")
        known = [*engines, *(engine.removesuffix("-rs") for engine in engines)]
        if name not in known or not path:
            raise usage_error(
                f"--engine-python: '{part}' is not one of the engines and a path, such as "
                f"{engines[0]}=PATH"
            )
        found[name] = _interpreter(path)
    chosen = {name: found.get(name) or found.get(name.removesuffix("-rs")) for name in engines}
    return {name: path or default for name, path in chosen.items()}


def _interpreter(path: str) -> Path:
    place = Path(path)
    if place.is_dir():
        place = place / "bin" / "python"
    if not place.is_file():
        raise DetokbenchError(f"--engine-python: there is no interpreter at {path}")
    return place.absolute()  # not resolved: a virtual environment's python is a link
