"""From what the processes answered to the facts of a run that its record keeps."""

from __future__ import annotations

from typing import Any

from detokbench.bench.machine import usable_cpus
from detokbench.live.cpu_load import cpu_loads
from detokbench.live.delivery import Delivery, delivery_of
from detokbench.live.judge import Verdict, judge
from detokbench.live.one_run import Answers
from detokbench.live.plan import EngineFacts
from detokbench.live.process_facts import process_facts
from detokbench.live.quantiles import quantiles
from detokbench.live.run_view import RunView
from detokbench.live.setup import Asked
from detokbench.live.topology import CLIENTS, ENGINE
from detokbench.records.pipeline import Hop, ProcessFacts, RunFacts, RunOf

_CLIENT_BOUND = 0.8
"""Of a core: clients that used more may have been what was measured."""


def run_facts(answers: Answers, asked: Asked, of: RunOf) -> RunFacts:
    """The facts of one run, also of one that ended early."""
    view = RunView(answers, asked)
    delivery = delivery_of(view)
    processes = process_facts(view)
    itl = quantiles(gap for done in answers.done.values() for gap in done.itl)
    loads = _loads(view, processes)
    return RunFacts(
        of=of,
        batch=answers.request.batch,
        window_s=view.window_s,
        **_schedule(view.engine),
        ids=round(view.totals[ENGINE].last(lambda s: s.ids)),
        rows_per_step=_rows_per_step(view),
        steps_share=_steps_share(view),
        itl=itl,
        gap=quantiles(gap for done in answers.done.values() for gap in done.gaps),
        **delivery._asdict(),
        **_judge(view, delivery, itl.mean, loads)._asdict(),
        busiest_cpu_share=_busiest(view, loads),
        engine_cpu_share=loads.get(ENGINE, 0.0),
        hops=_hops(answers),
        processes=processes,
        **_checked(answers),
        **_client(processes),
        series=view.series(),
    )


def _schedule(engine: EngineFacts) -> dict[str, Any]:
    """How the engine kept its schedule, and what became of its requests."""
    return {
        "duration_s": (engine.end_ns - engine.start_ns) * 1e-9,
        "steps": engine.steps,
        "late_steps": engine.late_steps,
        "drift_s": engine.drift_ns * 1e-9,
        "worst_late_s": engine.worst_ns * 1e-9,
        "check_s_per_step": engine.check_ns * 1e-9 / engine.steps if engine.steps else 0.0,
        "requests": engine.requests,
        "finished": engine.finished,
        "aborted": engine.aborted,
    }


def _loads(view: RunView, processes: list[ProcessFacts]) -> dict[str, float]:
    """The part of its CPUs that the run keeps busy, for each process."""
    usable = usable_cpus()
    shares = {process.name: process.cpu_share or 0.0 for process in processes}
    return cpu_loads(shares, view.processes.cpus(usable), len(usable))


def _busiest(view: RunView, loads: dict[str, float]) -> float:
    """Of the CPUs that the host's processes are on: engine and clients may be slow without them."""
    return max((loads.get(name, 0.0) for name in view.processes.host), default=0.0)


def _judge(
    view: RunView, delivery: Delivery, itl_s: float | None, loads: dict[str, float]
) -> Verdict:
    asked = view.asked
    return judge(
        asked.topology,
        chunks_per_token=delivery.typical_chunks_per_token,
        interval=asked.interval,
        lag_s_per_s=delivery.lag_s_per_s,
        itl_s=itl_s,
        t_step_s=asked.t_step_s,
        steps_share=_steps_share(view),
        busiest_cpu=_busiest(view, loads),
        engine_cpu=loads.get(ENGINE, 0.0),
    )


def _steps_share(view: RunView) -> float:
    """Steps done of those that were due until the run's end."""
    engine, asked_s = view.engine, view.answers.request.duration_s
    due = min(asked_s, (engine.end_ns - engine.start_ns) * 1e-9) / view.asked.t_step_s
    return min(engine.steps / due, 1.0) if due >= 1 else 1.0


def _rows_per_step(view: RunView) -> float | None:
    """Ids a step of the engine: the rows that ran, within the window."""
    steps = view.gained((ENGINE,), lambda s: s.steps)
    return view.gained((ENGINE,), lambda s: s.ids) / steps if steps > 0 else None


def _hops(answers: Answers) -> list[Hop]:
    return [
        Hop(name=name if hop == "client" else f"{name} {hop}", delay=quantiles(values))
        for name, done in answers.done.items()
        if name != ENGINE
        for hop, values in done.delays.items()
    ]


def _checked(answers: Answers) -> dict[str, Any]:
    """Sampled texts against those of the ids that were sent; zeros where nothing was compared."""
    checked = answers.checked
    return {
        "checked": 0 if checked is None else checked.checked,
        "wrong": 0 if checked is None else checked.wrong,
        "first_difference": "" if checked is None else checked.first,
    }


def _client(processes: list[ProcessFacts]) -> dict[str, Any]:
    """Whether the clients may have been what was measured."""
    share = next((facts.cpu_share for facts in processes if facts.name == CLIENTS), None)
    return {"client_share": share, "is_client_bound": share is not None and share > _CLIENT_BOUND}
