"""Whole front ends beside a sweep's bare paths: measured ones, and published ones for the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from detokbench.model.crossover import Answer, Crossover, crossover
from detokbench.model.curves import Line, Measured
from detokbench.model.front_ends import MOST, front_ends_needed
from detokbench.records.front_end_costs import CostAtStreams, FrontEndCost
from detokbench.records.sweep import Sweep
from detokbench.report.units import US, microseconds, milliseconds
from detokbench.tstep.curves import TStepCurve

# CPU µs a token of whole front ends at 128 streams on 2 cores, HTTP included (vLLM 0.33.0, SGLang
# 0.5.23 without its detokenizer): given, not measured by this command.
GIVEN_FRONT_ENDS = {
    "vllm": ("vLLM, Python", 27 * US),
    "vllm-rs": ("vLLM, Rust", 8.1 * US),
    "sglang": ("SGLang, Python", 32 * US),
    "sglang-rs": ("SGLang, Rust", 8.4 * US),
}


@dataclass(frozen=True)
class WholeFrontEnd:
    """The busiest process of an engine's server; ``host_s`` counts ids a step and engines."""

    name: str
    origin: Literal["given", "measured"]
    host_s: Line | Measured

    @property
    def label(self) -> str:
        """How tables and charts call it."""
        if self.origin == "given":
            return f"{self.name}, given"
        return f"{self.name} front end (measured)"

    @property
    def measured_at(self) -> tuple[float, ...]:
        """The batches of its measured points; none of a given one."""
        return () if isinstance(self.host_s, Line) else self.host_s.batches

    def is_extrapolated(self, batch: float) -> bool:
        """Whether a batch lies outside of those that were measured."""
        points = self.measured_at
        return bool(points) and not points[0] <= batch <= points[-1]

    def crossover(self, curve: TStepCurve) -> Crossover:
        """B* against one T_step; EXTRAPOLATED below the fewest measured streams as well."""
        found = crossover(self.host_s, curve, largest_batch=curve.largest_batch)
        is_point = found.answer in {Answer.CROSSES, Answer.ALWAYS_LATE}
        if is_point and found.batch is not None and self.is_extrapolated(found.batch):
            return replace(found, answer=Answer.EXTRAPOLATED)
        return found

    def needed(self, curve: TStepCurve, batch: int) -> str:
        """Processes that a batch needs, each with its part; ``~`` outside of what was measured."""
        count = front_ends_needed(batch, self.host_s, curve)
        if count is None:
            return f"over {MOST}"
        return f"{'~' if self.is_extrapolated(batch / count) else ''}{count}"

    def token_us(self, batch: int) -> str:
        """µs a sequence and step at a batch; ``~`` outside of the measured streams."""
        mark = "~" if self.is_extrapolated(batch) else ""
        return f"{mark}{microseconds(self.host_s(batch) / batch)}"


def measured_front_ends(sweep: Sweep) -> list[WholeFrontEnd]:
    """Those of the ``frontend`` records that the sweep was given."""
    ids, engines = sweep.options.ids_per_step, sweep.options.engines_per_frontend
    return [
        WholeFrontEnd(front_end_name(cost), "measured", cost.host_s(ids, engines))
        for cost in sweep.options.front_ends
    ]


def whole_front_ends(sweep: Sweep) -> list[WholeFrontEnd]:
    """The measured ones first; a published figure stands in for an engine that was not."""
    ids, engines = sweep.options.ids_per_step, sweep.options.engines_per_frontend
    known = {cost.engine for cost in sweep.options.front_ends}
    given = [
        WholeFrontEnd(name, "given", Line(0.0, cost_s * ids * engines))
        for engine, (name, cost_s) in GIVEN_FRONT_ENDS.items()
        if engine not in known
    ]
    return measured_front_ends(sweep) + given


def front_end_name(cost: FrontEndCost) -> str:
    """The engine, and how many front ends shared the work where it was more than one."""
    return cost.engine if cost.front_ends == 1 else f"{cost.engine} x {cost.front_ends}"


def front_end_notes(sweep: Sweep) -> list[str]:
    """What the measured front ends' lines are made of."""
    costs = sweep.options.front_ends
    if not costs:
        return []
    lines = [_made_of(cost, str(sweep.record.machine["cpu"])) for cost in costs]
    return [
        "Whole front ends (measured by frontend): a step is the CPU of the busiest process, or "
        "the shortest T_step that held where that is shorter; straight lines between the measured "
        "streams, ~: prolonged beyond them. CPU at a T_step, and the shortest that held: "
        + " ".join(lines)
    ]


def _made_of(cost: FrontEndCost, cpu: str) -> str:
    points = sorted(cost.at_streams.items())
    roles = "/".join(dict.fromkeys(at.role for _, at in points))
    values = ", ".join(
        f"{'' if at.held_s else '≥ '}{microseconds(at.s_per_token)} at {streams} ({_paces(at)})"
        for streams, at in points
    )
    where = "" if cost.cpu == cpu else f" on {cost.cpu or 'a CPU not named'}"
    return f"{front_end_name(cost)} {cost.version}{where}, {roles}: µs a token {values} streams."


def _paces(at: CostAtStreams) -> str:
    if at.held_s is None or at.held_s == at.t_step_s:
        return f"{milliseconds(at.t_step_s)} ms"
    return f"{milliseconds(at.t_step_s)} ms, held {milliseconds(at.held_s)} ms"
