"""The part of ``encode`` that runs on event loops, in one worker that nothing disturbs."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import msgspec

from detokbench.bench.encode_subjects import as_engines_call, call_ns, calls_of_one
from detokbench.bench.plan import LiveEncodeRequest
from detokbench.bench.sampling import quiet_gc
from detokbench.live.admission_stall import measure_stall
from detokbench.live.encode_arrivals import WAYS, measure_arrivals, poisson_times
from detokbench.live.heartbeat import idle_s
from detokbench.model.latency import latency_of
from detokbench.paths.protocol import PathClass
from detokbench.records.encode import ArrivalCell, GilFact, StallCell, patience_s
from detokbench.vocab import Vocabulary
from detokbench.workload.prompt_texts import PromptText, read_prompt_texts
from detokbench.workload.streams import Workload

_IDLE_S = 0.3
_LOOK_S = 0.0002
_GIL_CALLS = 3
Part = tuple[str, Any]
"""The field of the details that it belongs to, and the value or an entry of the list."""


def measure_live(
    request: LiveEncodeRequest, vocabulary: Vocabulary, classes: dict[str, PathClass]
) -> Iterator[Part]:
    """Measure all cells, arrivals and stalls mixed in random order; yields each when it is done."""
    texts = read_prompt_texts(request.workload_file)
    workload = msgspec.msgpack.decode(Path(request.workload_file).read_bytes(), type=Workload)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # as both engines leave it for text models
    cells: list[Callable[[], Part]] = [
        *(
            _arrival_cell(request, vocabulary, texts[length], length, rate, way)
            for length, rate in request.arrivals
            for way in WAYS
        ),
        *(
            _stall_cell(request, vocabulary, classes[path], workload, length)
            for path, length in request.stalls
        ),
    ]
    random.Random(request.seed).shuffle(cells)
    with quiet_gc(request.keep_gc):
        yield "idle_blocked_s", asyncio.run(idle_s(_IDLE_S))
        for name, call in calls_of_one(vocabulary).items():
            yield "gil", _gil_fact(name, call, texts[request.gil_length], request.gil_length)
        for measure in cells:
            yield measure()


def _arrival_cell(
    request: LiveEncodeRequest,
    vocabulary: Vocabulary,
    texts: list[PromptText],
    length: int,
    rate: float,
    way: str,
) -> Callable[[], Part]:
    def measure() -> Part:
        # The three ways get the same arrivals.
        times_s = poisson_times(
            rate, request.duration_s, random.Random(f"{request.seed}:{length}:{rate}")
        )
        arrived = asyncio.run(
            measure_arrivals(
                way,
                as_engines_call(vocabulary),
                [text.text for text in texts],
                times_s,
                patience_s(request.duration_s),
                request.max_batch,
                request.wait_s,
            )
        )
        waits_s = [wait for wait in arrived.waits_s if wait is not None]
        latency = latency_of(waits_s)
        return "arrivals", ArrivalCell(
            way=way,
            length=length,
            rate=rate,
            load=None,
            offered=len(times_s),
            unfinished=len(times_s) - len(waits_s),
            seconds=arrived.seconds,
            throughput=len(waits_s) / arrived.seconds,
            median_s=latency.median,
            p99_s=latency.p99,
            worst_s=latency.worst,
            blocked_s=arrived.blocked_s,
            calls=arrived.calls,
            mean_batch=arrived.encoded / arrived.calls if arrived.calls else 0.0,
            cpu_s=arrived.cpu_s,
            waits_us=[round(wait * 1e6) for wait in waits_s],
        )

    return measure


def _stall_cell(
    request: LiveEncodeRequest,
    vocabulary: Vocabulary,
    path_class: PathClass,
    workload: Workload,
    length: int,
) -> Callable[[], Part]:
    def measure() -> Part:
        stalled = asyncio.run(
            measure_stall(
                path_class(vocabulary),
                workload.prompts,
                workload.outputs,
                workload.admit_prompts[length],
                workload.admit_first_ids,
                request.t_step_s,
                max(request.admit_every, round(request.duration_s / request.t_step_s)),
                request.admit_every,
                random.Random(f"{request.seed}:{length}"),
            )
        )
        gaps = latency_of(stalled.gaps_s)
        blocked_s = [a + b for a, b in zip(stalled.admit_s, stalled.first_s, strict=True)]
        return "stalls", StallCell(
            path=path_class.name,
            length=length,
            admissions=len(blocked_s),
            step_s=stalled.step_s,
            median_s=gaps.median,
            p99_s=gaps.p99,
            worst_s=gaps.worst,
            admit_s=median(stalled.admit_s),
            first_token_s=median(stalled.first_s),
            blocked_s=median(blocked_s),
            blocked_worst_s=max(blocked_s),
            blocked_cpu_s=median(stalled.cpu_s),
            modelled_blocked_s=None,
            modelled_worst_s=None,
            gaps_us=[round(gap * 1e6) for gap in stalled.gaps_s],
        )

    return measure


def _gil_fact(
    name: str, call: Callable[[str], Any], texts: list[PromptText], length: int
) -> GilFact:
    """A call in a thread beside this one, which looks how long it could not run; the worst."""
    pairs = [_beside(call, texts[number % len(texts)].text) for number in range(_GIL_CALLS)]
    blocked_s, call_s = max(pairs)
    return GilFact(call=name, length=length, call_s=call_s, blocked_s=blocked_s)


def _beside(call: Callable[[str], Any], text: str) -> tuple[float, float]:
    """The longest time this thread could not run, and how long the call took."""
    took: list[float] = []

    def timed() -> None:
        took.append(call_ns(call, text) * 1e-9)

    thread = threading.Thread(target=timed)
    longest, last = 0.0, perf_counter()
    thread.start()
    while thread.is_alive():
        sleep(_LOOK_S)
        now = perf_counter()
        longest, last = max(longest, now - last - _LOOK_S), now
    thread.join()
    return longest, took[0]
