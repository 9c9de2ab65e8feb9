"""What a sweep's record says: its rows become the model's inputs, and the model answers.

Everything here is worked out from the record alone, so that it can be redone elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from detokbench.model.crossover_interval import CrossoverInterval
from detokbench.model.sweep import (
    NOTHING_SENT,
    PathCost,
    RequestCost,
    Topology,
    find_crossover,
    interval_that_keeps_up,
    processes_needed,
)
from detokbench.records.front_end_costs import FrontEndCost
from detokbench.records.schema import Record, Row
from detokbench.tstep.curves import Deployment, TStepCurve, given_curve, measured_curves

SGLANG_PATHS = frozenset({"batch-decode", "row-decode", "rust-batch"})
"""Paths that run in SGLang's detokenizer process, once an interval; all others decode each step."""
SERVER_PARTS = frozenset({"object", "json-pydantic", "sse-frame"})
"""The parts of a chunk as vLLM's and SGLang's Python servers make it."""


_Positive = Annotated[int, Meta(ge=1)]


class SweepOptions(msgspec.Struct, kw_only=True):
    """What a sweep was asked, as its record keeps it in ``details["options"]``."""

    deployment: Deployment
    contexts: Annotated[list[int], Meta(min_length=1)]
    intervals: Annotated[list[_Positive], Meta(min_length=1)]
    ids_per_step: _Positive = 1
    engines_per_frontend: _Positive = 1
    logprobs: list[int] = []
    given_s: float | None = None
    measured_s: dict[int, dict[int, float]] = {}
    """T_step of a record of time-step: context → batch → seconds."""
    overlap: bool = True
    at_batch: _Positive = 256
    """The batch that intervals, front ends and the recommendation are for."""
    front_ends: list[FrontEndCost] = []
    """Whole front ends that were measured, from records of ``frontend``."""


def sweep_options_of(record: Record) -> SweepOptions:
    """The options of a sweep's record; in a file the numbers of contexts and batches are words."""
    return msgspec.convert(record.details["options"], SweepOptions, str_keys=True)


@dataclass(frozen=True)
class Crossing:
    """B* of one path against one T_step. ``counted`` says what the host does."""

    path: str
    threads: int | None
    counted: str
    interval: int
    curve: TStepCurve
    found: CrossoverInterval


class Sweep:
    """A record of kind 'sweep', by what it measured."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.options = sweep_options_of(record)
        steps = (row for row in record.rows if row.metric == "host_step")
        self._steps = [row for row in steps if row.median is not None]

    @cached_property
    def batches(self) -> list[int]:
        """Batches that the host was measured at."""
        return sorted({row.batch for row in self._steps})

    @cached_property
    def curves(self) -> list[TStepCurve]:
        """T_step by source and context, in the order of the sources: given, on paper, measured."""
        options = self.options
        if options.given_s is not None:
            return [given_curve(options.given_s)]
        if options.measured_s:
            return measured_curves(options.measured_s)
        derated = options.deployment.derate != 1.0
        return [
            options.deployment.paper_curve(context, source)
            for source in (("roofline", "derated") if derated else ("roofline",))
            for context in options.contexts
        ]

    @cached_property
    def costs(self) -> list[PathCost]:
        """The decoding of every path, in the order of the record."""
        pairs = dict.fromkeys((row.path, row.threads) for row in self._steps)
        return [self._cost(path, threads) for path, threads in pairs]

    def _cost(self, path: str, threads: int | None) -> PathCost:
        rows = [row for row in self._steps if (row.path, row.threads) == (path, threads)]
        intervals = sorted({row.stream_interval or 1 for row in rows})
        topology: Topology = "sglang" if path in SGLANG_PATHS else "vllm"
        by_interval = {
            interval: _by_process([row for row in rows if (row.stream_interval or 1) == interval])
            for interval in intervals
        }
        return PathCost(path, threads, topology, by_interval)

    def cost(self, path: str, threads: int | None = None) -> PathCost | None:
        """The decoding of one path, None where it was not measured."""
        return next((cost for cost in self.costs if cost.key == (path, threads)), None)

    def sending(self, interval: int = 1) -> RequestCost:
        """What a sequence costs beside decoding: chunks as the servers make them, and extras."""
        parts = [row for row in self.record.rows if row.metric == "chunk"]
        served = [row for row in parts if row.path in SERVER_PARTS]
        chunk_s = [sum(values) for values in zip(*map(_filled, served), strict=True)]
        # Without overlap the stop checks do not keep up or fail to: they lengthen the step.
        stops_s = self.stops_s(interval) if self.options.overlap else None
        return RequestCost(chunk_s=chunk_s, extra_s=self._extra_s(), stops_s=stops_s)

    def _extra_s(self) -> list[float] | None:
        """Log-probabilities are counted where the sweep was asked for one number of them."""
        asked = self.options.logprobs
        rows = [row for row in self.record.rows if row.metric == "logprobs"]
        return _filled(rows[0]) if len(asked) == 1 and rows else None

    def stops_s(self, interval: int = 1) -> list[float] | None:
        """A request's stop checks in SGLang's scheduler, seconds a step; None without stops."""
        checks = [row for row in self.record.rows if row.metric == "both_checks"]
        rows = [row for row in checks if row.stream_interval == interval]
        return _filled(rows[0]) if rows else None

    def crossings(self, interval: int = 1) -> Iterator[Crossing]:
        """B* of every path against every T_step, decoding only and with sending."""
        for cost in self.costs:
            for counted, request in (("decode", NOTHING_SENT), ("all", self.sending(interval))):
                for curve in self.curves:
                    found = find_crossover(
                        cost,
                        request,
                        curve,
                        interval=interval,
                        ids_per_step=self.options.ids_per_step,
                        engines=self.options.engines_per_frontend,
                        largest_batch=curve.largest_batch,
                    )
                    yield Crossing(cost.path, cost.threads, counted, interval, curve, found)

    def smallest_interval(self, cost: PathCost, curve: TStepCurve, batch: int) -> int | None:
        """The smallest measured k at which a path keeps up with ``batch``."""
        return interval_that_keeps_up(
            cost,
            self.sending,
            batch,
            curve(batch),
            self.options.intervals,
            ids_per_step=self.options.ids_per_step,
            engines=self.options.engines_per_frontend,
        )

    def processes(self, cost: PathCost, curve: TStepCurve, batch: int) -> int | None:
        """Front-end processes that ``batch`` needs at stream interval 1."""
        return processes_needed(
            cost,
            self.sending(),
            batch,
            curve(batch),
            ids_per_step=self.options.ids_per_step,
            engines=self.options.engines_per_frontend,
        )


def _filled(row: Row) -> list[float]:
    """One value a process; where a disturbed one has none, the median of the others stands in."""
    middle = row.median or 0.0
    return [middle if value is None else value for value in row.samples]


def _by_process(rows: Sequence[Row]) -> list[dict[int, float]]:
    """One ``{batch: seconds a step}`` a process."""
    processes = max(len(row.samples) for row in rows)
    return [{row.batch: _filled(row)[process] for row in rows} for process in range(processes)]
