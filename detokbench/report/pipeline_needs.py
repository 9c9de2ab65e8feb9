"""How many processes a host that does not keep up would take, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from detokbench.live.topology import ENGINE
from detokbench.records.pipeline import PipelineDetails, RunFacts
from detokbench.report.pipeline_model import engine_at, needed_by_cpu, needed_by_parts
from detokbench.report.units import duration


def run_needs(run: RunFacts, details: PipelineDetails) -> str:
    """How many processes a run that broke would have needed."""
    if not run.broken:
        return ""
    engine_s = sum(p.cpu_s_per_step or 0.0 for p in run.processes if p.name == ENGINE)
    least = "at least" if run.broken.startswith("chunks merge") else "about"
    return _needs(run.batch, needed_by_cpu(run, details.t_step_s), engine_s, details, least)


def ramp_needs(details: PipelineDetails) -> str:
    """As ``run_needs``, by the parts, at the largest batch that broke."""
    batch = max((run.batch for run in details.runs if run.broken), default=None)
    if batch is None:
        return ""
    return _needs(batch, needed_by_parts(details, batch), engine_at(details, batch), details)


def _needs(
    batch: int,
    needed: Mapping[str, int | None],
    engine_s: float,
    details: PipelineDetails,
    least: str = "about",
) -> str:
    if engine_s > details.t_step_s:
        return (
            f"At B = {batch} the engine alone takes {duration(engine_s)} of CPU a step, more than "
            "T_step: more processes behind it do not help."
        )
    for kind, number in needed.items():
        if number is None:
            return f"No number of {kind}s keeps up at B = {batch}: one sequence takes over T_step."
    processes = " and ".join(
        f"{number} {kind}{'' if number == 1 else 's'}" for kind, number in needed.items()
    )
    if not processes:
        return ""
    return (
        f"At B = {batch} this takes {least} {processes} (modelled: CPU a step / T_step), a CPU "
        "each, and one for the engine."
    )
