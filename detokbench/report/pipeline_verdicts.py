"""What the runs of a ``pipeline`` record say together: who kept up, who cannot be judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from detokbench.live.topology import CLIENTS, ENGINE
from detokbench.records.pipeline import PipelineDetails, ProcessFacts, RunFacts

_AROUND = (0.8, 1.25)  # of the live B*
_FULL = 0.95  # of the batch: from here on it counts as full
_SHORT = (
    (r"falls behind by (\S+) ms a second", r"behind \1 ms/s"),
    (r"chunks merge: (\S+) a token", r"merges: \1"),
    (r"the scheduler is late: (\S+) % of the steps due", r"steps: \1 %"),
    (r"ITL is (\S+) T_step", r"ITL \1 T_step"),
)


def verdict(run: RunFacts) -> str:
    """In a few words, with the reason."""
    if run.not_judged:
        return f"not judged: {_who_took_it(run)} ({run.not_judged})"
    return run.broken or "keeps up"


def _who_took_it(run: RunFacts) -> str:
    return "clients at their limit" if run.is_client_bound else "CPU taken by others"


def short_verdict(run: RunFacts) -> str:
    """``verdict`` for a narrow table: ``behind 301 ms/s``."""
    if run.not_judged:
        return "not judged"
    text = run.broken or "keeps up"
    for long, short in _SHORT:
        text = re.sub(long, short, text)
    return text


def host_processes(run: RunFacts, details: PipelineDetails) -> list[ProcessFacts]:
    """Those of the host: not the clients, and the engine only where it does the stop checks."""
    left_out = {CLIENTS} if details.topology == "sglang" and details.stop else {CLIENTS, ENGINE}
    return [process for process in run.processes if process.name not in left_out]


def busiest_process(run: RunFacts, details: PipelineDetails) -> ProcessFacts | None:
    """The process of the host that used the most CPU; None where none lived to say."""
    host = host_processes(run, details)
    return max(host, key=lambda process: process.cpu_share or 0.0, default=None)


def rows_per_step(run: RunFacts) -> float:
    """Rows that ran at a time on average; in older records over the whole run."""
    if run.rows_per_step is not None:
        return run.rows_per_step
    return run.ids / run.steps if run.steps else 0.0


def at_batch(run: RunFacts) -> str:
    """``at B = 64``, or how many rows there really were."""
    rows = rows_per_step(run)
    if not run.steps or rows >= _FULL * run.batch:
        return f"at B = {run.batch}"
    return f"at about {rows:.0f} rows a step (B = {run.batch} at most)"


def steps_share(run: RunFacts, t_step_s: float) -> float:
    """Steps done of those that were due."""
    if run.steps_share is not None:
        return run.steps_share
    due = run.duration_s / t_step_s
    return min(run.steps / due, 1.0) if due >= 1 else 1.0


def without_verdict(runs: Sequence[RunFacts]) -> list[int]:
    """Batches of the walk none of whose runs could be judged."""
    walked = [run for run in runs if run.of in ("walk", "bisect")]
    seen = {run.batch for run in walked if not run.not_judged}
    return sorted({run.batch for run in walked} - seen)


def is_doubtful(details: PipelineDetails) -> bool:
    """Whether the live B* rests on batches that could not be judged.

    They lie around it, or no larger one was seen to keep up.
    """
    missing = without_verdict(details.runs)
    held = max((run.batch for run in details.runs if _holds(run)), default=0)
    if details.live_batch is None:
        return any(batch > held for batch in missing)
    low, high = (part * details.live_batch for part in _AROUND)
    return any(held < batch < high or low <= batch <= high for batch in missing)


def _holds(run: RunFacts) -> bool:
    return not run.broken and not run.not_judged


class Disorder(NamedTuple):
    """Verdicts that do not follow the batch: ``broke`` broke, while ``held``, no smaller, held.

    The live B* lies between ``low`` and ``high``: the largest batch below all that broke (0 where
    there is none), the smallest above all that held (None where there is none).
    """

    broke: int
    held: int
    low: int
    high: int | None


def disorder(runs: Sequence[RunFacts]) -> Disorder | None:
    """Where verdicts are not in order of the batch; None where they are.

    In the walk a batch breaks where two runs did; a run at a part of B* counts by itself.
    """
    held = {run.batch for run in runs if _holds(run)}
    walked = {run.batch for run in runs if run.of != "depth" and _holds(run)}
    broke = {
        run.batch for run in runs if run.broken and (run.of == "depth" or run.batch not in walked)
    }
    if not held or not broke or min(broke) > max(held):
        return None
    return Disorder(
        broke=min(broke),
        held=max(held),
        low=max((batch for batch in held if batch < min(broke)), default=0),
        high=min((batch for batch in broke if batch > max(held)), default=None),
    )
