"""What a whole front end costs, taken out of a ``frontend`` record for a sweep. Times in seconds.

A sweep's record keeps these costs, so that it needs no second file to be shown again.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from detokbench.model.curves import Measured
from detokbench.records.frontend import PLAIN, FrontendDetails, FrontendRun, details_of
from detokbench.records.schema import Record

_NOT_ITS_OWN = frozenset({"engine", "client"})
_SHARED_OUT = "http"  # the role whose processes are as many as there are front ends
FEWEST_STREAMS = 2


class CostAtStreams(msgspec.Struct, kw_only=True, frozen=True):
    """CPU a token of the busiest process at one number of streams and ``t_step_s``.

    ``held_s``: the shortest T_step at which every chunk came, and in time. None where there was
    no such: then a token costs less than it should.
    """

    s_per_token: float
    role: str
    t_step_s: float
    held_s: float | None

    def step_s(self, streams: int) -> float:
        """What a step takes: that CPU, or the shortest T_step that held where it is shorter.

        A process with many threads, or one that works in larger portions under load, keeps up
        where CPU a token at an easy pace says that it does not.
        """
        cpu_s = streams * self.s_per_token
        return cpu_s if self.held_s is None else min(cpu_s, self.held_s)


class FrontEndCost(msgspec.Struct, kw_only=True, frozen=True):
    """The busiest process of one front end, by streams. ``cpu`` is the machine it was seen on."""

    engine: str
    version: str
    front_ends: int
    cpu: str
    at_streams: dict[int, CostAtStreams]

    @property
    def measured_to(self) -> int:
        """The most streams."""
        return max(self.at_streams)

    def host_s(self, ids_per_step: int, engines: int) -> Measured:
        """Seconds of a step by batch. ``engines`` of that batch each send to the front end.

        One id a step was measured; more of them are counted as if each were a chunk.
        """
        points = sorted(self.at_streams.items())
        return Measured(
            tuple(streams / engines for streams, _ in points),
            tuple(at.step_s(streams) * ids_per_step for streams, at in points),
        )


def front_end_costs(record: Record) -> list[FrontEndCost]:
    """Each front end of a ``frontend`` record that was measured at two numbers of streams.

    Raises msgspec.ValidationError for a record of another form.
    """
    details = details_of(record)
    found = [_cost(details, engine.name, record) for engine in details.engines]
    return [cost for cost in found if len(cost.at_streams) >= FEWEST_STREAMS]


def _cost(details: FrontendDetails, name: str, record: Record) -> FrontEndCost:
    runs: dict[int, list[FrontendRun]] = {}
    for run in details.runs:
        if (run.engine, run.variant) == (name, PLAIN) and run.of != "variant" and run.ids:
            runs.setdefault(run.streams, []).append(run)
    return FrontEndCost(
        engine=name,
        version=next(engine.version for engine in details.engines if engine.name == name),
        front_ends=details.front_ends,
        cpu=str(record.machine.get("cpu", "")),
        at_streams={n: _at_streams(runs[n], details.front_ends) for n in sorted(runs)},
    )


def _at_streams(runs: Sequence[FrontendRun], front_ends: int) -> CostAtStreams:
    """CPU at the shortest T_step asked for that held, or else that the search found.

    Not at the limit itself: there writes merge, and a token costs less than at a GPU's pace.
    """
    held = [run for run in runs if run.holds]
    chosen = [run for run in held if run.of == "grid"] or held
    pace_s = min(run.t_step_s for run in chosen) if held else max(run.t_step_s for run in runs)
    costs = [_busiest(run, front_ends) for run in (chosen or runs) if run.t_step_s == pace_s]
    return CostAtStreams(
        s_per_token=median(cost_s for _, cost_s in costs),
        role=costs[0][0],
        t_step_s=pace_s,
        held_s=min((run.t_step_s for run in held), default=None),
    )


def _busiest(run: FrontendRun, front_ends: int) -> tuple[str, float]:
    """The role whose process does most a token, and how much."""
    costs = {
        part.role: (part.s_per_token or 0.0) / (front_ends if part.role == _SHARED_OUT else 1)
        for part in run.roles
        if part.role not in _NOT_ITS_OWN
    }
    role = max(costs, key=costs.__getitem__)
    return role, costs[role]
