"""pyperf's side of ``against_pyperf.py``: the loop over DecodeStream.step, in pyperf's workers."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pyperf

from detokbench.bench.subjects import CALLS_TO_RECORD

BATCH = 32


def timed_loop() -> Callable[[int], float]:
    """A function of pyperf's kind: so many rounds of the loop → seconds."""
    from detokbench.bench.subjects import StreamCalls
    from detokbench.paths.protocol import Flags
    from detokbench.vocab import load_vocabulary
    from detokbench.workload.scenario import load_scenario
    from detokbench.workload.streams import build_workload

    scenario, folder = load_scenario("llama3-chat")
    vocabulary = load_vocabulary(scenario.vocabulary)
    workload = build_workload(vocabulary, scenario, folder, seed=0)
    subject = StreamCalls(vocabulary, workload.prompts[:BATCH], workload.steps(BATCH, 1), Flags())
    gc.disable()  # as measure-c does
    return lambda rounds: sum(subject.run(subject.limit).ns for _ in range(rounds)) * 1e-9


if __name__ == "__main__":
    runner = pyperf.Runner(processes=6, values=3, warmups=1, min_time=0.02)
    runner.parse_args()
    # Only workers need the loop: pyperf's own process must not load a vocabulary for nothing.
    function = timed_loop() if runner.args.worker else float
    runner.bench_time_func("DecodeStream.step", function, inner_loops=CALLS_TO_RECORD)
