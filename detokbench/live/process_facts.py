"""What each process of a run took: CPU time, memory, the longest that its event loop was held."""

from __future__ import annotations

from math import ceil

from detokbench.live.run_view import RunView
from detokbench.live.topology import ENGINE
from detokbench.records.pipeline import ProcessFacts

_MOST_WEIGHED = 60


def process_facts(view: RunView) -> list[ProcessFacts]:
    """The facts of all processes that lived to the end of the run."""
    return [_of_one(view, name) for name in view.answers.samples if name in view.answers.done]


def _of_one(view: RunView, name: str) -> ProcessFacts:
    done = view.answers.done[name]
    cpu_s = view.gained((name,), lambda s: s.cpu_ns) * 1e-9
    steps = view.gained((ENGINE,), lambda s: s.steps)
    return ProcessFacts(
        name=name,
        cpu_share=cpu_s / view.window_s if view.window_s > 0 else None,
        cpu_s=(done.last.cpu_ns - done.first.cpu_ns) * 1e-9,
        cpu_s_per_step=cpu_s / steps if steps > 0 else None,
        longest_block_s=done.longest_block_ns * 1e-9 if done.longest_block_ns else None,
        memory=_thinned(view.answers.memory.get(name, []), view.engine.start_ns),
        states_left=done.states_left,
        ids=done.last.ids if name in view.processes.decoding else None,
    )


def _thinned(weighed: list[tuple[int, int]], start_ns: int) -> list[tuple[float, int]]:
    """Not too many of (ns, bytes), as (seconds since the first step, bytes)."""
    step = ceil(len(weighed) / _MOST_WEIGHED) or 1
    return [(round((at_ns - start_ns) * 1e-9, 2), size) for at_ns, size in weighed[::step]]
