"""The parts of a process's work, each by itself and without a pace.

Steps are made by the engine's own code, so that requests begin and end as often as in a run; the
first step, which opens a whole batch, is not timed. CPU time is taken, not time on the wall: what
else the machine does is in neither. The path runs on fresh state.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from detokbench.live.arrivals import ArrivalTimes, Batch, Requests
from detokbench.live.counting import Counters, Window
from detokbench.live.emission import Advance, SglangScheduler, advance_vllm
from detokbench.live.messages import RowText, StepOutput, StepText
from detokbench.live.output_processor import OutputProcessor
from detokbench.live.plan import CalibrateRequest, Cost
from detokbench.live.readers import Readers
from detokbench.live.recording import Recorder
from detokbench.live.row_texts import AsBatch, OneByOne
from detokbench.live.schedule import now_ns
from detokbench.live.text_handler import TextHandler
from detokbench.workload.streams import Workload

_ROWS_A_ROUND = 20_000
_WARM_UP = 0.3  # of the time that is measured


class _Steps:
    """Steps of a closed batch, a round of them made ahead at a time."""

    def __init__(
        self, request: CalibrateRequest, workload: Workload, seed: int, advance: Advance
    ) -> None:
        requests = Requests(workload.prompts, workload.outputs, request.max_tokens, seed, first=0)
        self._batch = Batch(request.batch, requests, "closed", ArrivalTimes(1.0, seed))
        self._batch.begin()
        self._advance = advance
        self._size = max(_ROWS_A_ROUND // request.batch, 8)

    def round(self) -> list[StepOutput]:
        steps = []
        for number in range(self._size):
            emitted = self._advance(self._batch.running)
            self._batch.running = emitted.going_on
            self._batch.refill(0)
            steps.append(StepOutput(number, now_ns(), emitted.rows))
        return steps

    def rounds(self, seconds: float) -> Iterator[tuple[bool, list[StepOutput]]]:
        """Rounds for so long, first of all some that only warm up (False)."""
        begun = time.perf_counter()
        warm = begun + seconds * _WARM_UP
        end = warm + seconds
        first = True
        while (now := time.perf_counter()) < end or first:
            counts = now >= warm
            yield counts, self.round()
            first = first and not counts


def _advance(interval: int, is_sglang: bool) -> Advance:
    if not is_sglang:
        return advance_vllm
    return SglangScheduler((), interval, lambda text: [], lambda ids: "").advance


def _read_workload(file: str) -> Workload:
    return msgspec.msgpack.decode(Path(file).read_bytes(), type=Workload)


def _timed(steps: _Steps, seconds: float, do: Callable[[StepOutput], int]) -> Cost:
    """CPU seconds of ``do``, which answers how many chunks a step made."""
    cost = Cost(cpu_s=0.0, wall_s=0.0, steps=0, rows=0)
    for counts, made in steps.rounds(seconds):
        cpu, wall = time.process_time(), time.perf_counter()
        chunks = sum([do(step) for step in made])
        if counts:
            cost.cpu_s += time.process_time() - cpu
            cost.wall_s += time.perf_counter() - wall
            _count(cost, made, chunks)
    return cost


def _count(cost: Cost, made: list[StepOutput], chunks: int) -> None:
    cost.steps += len(made)
    cost.rows += sum(len(step.rows) for step in made)
    cost.chunks += chunks


def calibrate_decode(
    request: CalibrateRequest, workload_file: str, seed: int, texts: OneByOne | AsBatch
) -> Cost:
    """The path, with its stop strings where ``texts`` has some."""
    workload = _read_workload(workload_file)
    is_batch = isinstance(texts, AsBatch)
    steps = _Steps(request, workload, seed, _advance(request.interval, is_batch))

    def do(step: StepOutput) -> int:
        if isinstance(texts, AsBatch):
            return len(texts.take(step.rows))
        for row in step.rows:
            texts.take(row)
        return len(step.rows)

    return _timed(steps, request.seconds, do)


async def calibrate_queue(
    request: CalibrateRequest, workload_file: str, seed: int, texts: OneByOne
) -> Cost:
    """vLLM's output handler: rows decoded, chunks, collectors, and their readers."""
    counters = Counters()
    readers = _readers(request, counters)
    processor = OutputProcessor(texts, readers, request.interval, counters)
    steps = _Steps(request, _read_workload(workload_file), seed, advance_vllm)
    queue: asyncio.Queue[StepOutput] = asyncio.Queue()
    size = request.chunk_size

    async def do(step: StepOutput) -> None:
        queue.put_nowait(step)
        message = await queue.get()
        rows = message.rows
        for start in range(0, len(rows), size):
            processor.process(rows[start : start + size], message.emitted_ns)
            if start + size < len(rows):
                await asyncio.sleep(0)

    return await _timed_readers(steps, request.seconds, do, counters, lambda: processor.chunks_put)


async def calibrate_texts(request: CalibrateRequest, workload_file: str, seed: int) -> Cost:
    """SGLang's front end but for receiving: chunks, collectors, and their readers."""
    counters = Counters()
    handler = TextHandler(_readers(request, counters), counters)
    advance = _advance(request.interval, is_sglang=True)
    steps = _Steps(request, _read_workload(workload_file), seed, advance)

    async def do(step: StepOutput) -> None:
        rows = [RowText(r.request, " word", len(r.new_ids), r.finish) for r in step.rows]
        await handler.take(StepText(step.step, step.emitted_ns, 0, rows))

    return await _timed_readers(steps, request.seconds, do, counters, lambda: handler.chunks_put)


def _readers(request: CalibrateRequest, counters: Counters) -> Readers:
    """Readers that record the sampled streams as in a run: that costs time there too."""
    window = Window(0, 1e6)
    window.see(now_ns())
    return Readers(request.batch, Recorder(window, counters))


async def _timed_readers(
    steps: _Steps,
    seconds: float,
    do: Callable[[StepOutput], object],
    counters: Counters,
    put: Callable[[], int],
) -> Cost:
    """As ``_timed``, a step being over when its chunks have been read."""
    cost = Cost(cpu_s=0.0, wall_s=0.0, steps=0, rows=0)
    for counts, made in steps.rounds(seconds):
        cpu, wall, chunks = time.process_time(), time.perf_counter(), counters.chunks
        for step in made:
            await do(step)  # type: ignore[misc]
            while counters.chunks < put():
                await asyncio.sleep(0)
        if counts:
            cost.cpu_s += time.process_time() - cpu
            cost.wall_s += time.perf_counter() - wall
            _count(cost, made, counters.chunks - chunks)
    return cost
