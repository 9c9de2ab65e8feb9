"""Decode steps of Llama-3-8B that others published, to hold the roofline against."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, toml

_Positive = Annotated[float, Meta(gt=0)]
_Text = Annotated[str, Meta(min_length=1)]

# AIConfigurator is a model too: it counts on 0.8 of the peak bandwidth, which gives 5.60 ms at
# batch 1 on an H100 SXM. It is a derate to choose, not a measurement, so it is not in the file.
AICONFIGURATOR_DERATE = 0.8


class PublishedStep(Struct, frozen=True, forbid_unknown_fields=True):
    """One measurement. ``context`` and ``hardware`` are None where the source is silent."""

    t_step_ms: _Positive
    batch: Annotated[int, Meta(ge=1)]
    engine: _Text
    scope: _Text
    source: _Text
    context: Annotated[int, Meta(ge=0)] | None = None
    hardware: str | None = None

    @property
    def t_step_s(self) -> float:
        """The step in seconds."""
        return self.t_step_ms / 1e3


class _Table(Struct, forbid_unknown_fields=True):
    measurement: list[PublishedStep]


@cache
def published_steps() -> tuple[PublishedStep, ...]:
    """All published measurements, in the order of the file."""
    text = Path(__file__).with_name("published.toml").read_bytes()
    return tuple(toml.decode(text, type=_Table).measurement)
