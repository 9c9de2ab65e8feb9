"""Walk up the batches until the host falls behind, then halve the gap: the live B*.

A run that looks broken is run again, and counts only if the second one is too: whatever else the
machine does breaks a run now and then, and never mends one. A run that cannot be judged, since
others had taken its CPU, is repeated; one that still cannot counts as holding for the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from detokbench.live.one_run import run_once
from detokbench.live.prediction import predict
from detokbench.live.run_facts import run_facts
from detokbench.live.setup import Asked
from detokbench.live.supervise import Supervisor
from detokbench.records.pipeline import PipelineDetails, RunFacts, RunOf

Progress = Callable[[str, float], None]
DEPTHS = (0.8, 1.0, 1.2)
"""Batches, in parts of the live B*, whose queue is drawn over time."""
_REPEATS = 2  # of a run that cannot be judged
_WIDTH = 0.03  # of B*: where the bisection ends


@dataclass
class Found:
    """What the ramp has found so far, in the details of a record."""

    details: PipelineDetails


def walk(
    supervisor: Supervisor,
    asked: Asked,
    batches: list[int],
    duration_s: float,
    found: Found,
    progress: Progress,
) -> None:
    """Predict, walk, bisect, and run at parts and multiples of B*; fills ``found`` as it goes.

    Raises what ends it early: what was found until then is there.
    """
    details = found.details

    def run(batch: int, of: RunOf) -> RunFacts:
        answers = run_once(supervisor, asked, batch, duration_s)
        facts = run_facts(answers, asked, of)
        details.runs.append(facts)
        if answers.error is not None:
            raise answers.error
        return facts

    def breaks(batch: int, of: RunOf) -> bool:
        progress(f"B = {batch}", 0.5)
        return all(judged(lambda: run(batch, of)).broken for _ in range(2))

    progress("measuring the parts", 0.1)
    details.prediction = predict(supervisor, asked, batches)
    low = 0
    for batch in batches:
        if breaks(batch, "walk"):
            break
        low = batch
    else:
        details.live_low = low
        return
    low, high = bisect(low, batch, lambda middle: breaks(middle, "bisect"))
    details.live_low, details.live_high = low, high
    details.live_batch = (low + high) / 2
    for depth in DEPTHS:
        progress(f"at {depth} of B*", 0.9)
        run(max(round(depth * details.live_batch), 1), "depth")


def judged(run: Callable[[], RunFacts]) -> RunFacts:
    """The first run that can be judged, of three; else the last."""
    facts = run()
    for _ in range(_REPEATS):
        if not facts.not_judged:
            break
        facts = run()
    return facts


def bisect(low: int, high: int, breaks: Callable[[int], bool]) -> tuple[int, int]:
    """The last batch that holds and the first that does not, to 3 % or one sequence."""
    while high - low > max(1, round(_WIDTH * high)):
        middle = (low + high) // 2
        if breaks(middle):
            high = middle
        else:
            low = middle
    return low, high
