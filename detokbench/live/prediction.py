"""What the measured parts of a host add up to, and the batch at which that crosses T_step.

Each part is measured in the process that does it. ``wire``: receiving and unpacking, in a
detokenizer also packing and sending on, at the pace and with all else switched off. ``decode`` and
``stop``: by themselves, without a pace. ``queue``: what chunks, collectors and readers add to them,
without a pace; in SGLang's front end, by themselves. ``HTTP``: what a paced run over HTTP costs
beyond the others, at a pace that keeps the host busy and lets no chunk merge: a process that mostly
waits pays for waking up, and for cold caches, with every chunk. The engine's own work is taken from
the wire's run. Everything is measured three times, at all batches in turn, and the median counts: a
busy machine lends its processes a slower CPU for a while now and then.

Processes that share a CPU share its time, so their parts are added; the busiest CPU decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from detokbench.live.one_run import run_once
from detokbench.live.plan import CalibrateRequest, Cost, Part
from detokbench.live.run_view import RunView
from detokbench.live.setup import Asked
from detokbench.live.supervise import Supervisor
from detokbench.live.topology import CLIENTS, ENGINE, rows_each
from detokbench.model.crossover import crossover
from detokbench.model.curves import Measured
from detokbench.records.pipeline import PartCost, Prediction

_WIRE_S = 0.8
_WIRE_STEPS = 20
_PART_S = 0.25
_PASSES = 3
_HTTP_SLOWER = 4.0
_HTTP_BUSY = 0.85  # of a core, by what the run before cost
_HTTP_ROUNDS = 3
_NO_MERGING = 0.98  # chunks a token and stream interval
_FACTOR = 2
_ENOUGH = 1.3  # times T_step


def predict(supervisor: Supervisor, asked: Asked, batches: list[int]) -> Prediction:
    """Measure parts at rising batches until their sum has passed T_step, or the last batch."""
    passes = [list(_first_pass(supervisor, asked, calibration_batches(batches)))]
    at = list(dict.fromkeys(part.batch for part in passes[0]))
    for _ in range(_PASSES - 1):
        passes.append([part for batch in at for part in _parts(supervisor, asked, batch)])
    parts = medians(passes)
    busy = [busiest_cpu([part for part in parts if part.batch == batch], asked) for batch in at]
    curve = Measured(tuple(map(float, at)), tuple(seconds for seconds, _ in busy))
    crossing = crossover(curve, lambda batch: asked.t_step_s)
    return Prediction(
        parts=parts,
        batches=at,
        host_s=[seconds for seconds, _ in busy],
        busiest=busy[-1][1],
        answer=crossing.text,
        batch=crossing.batch,
    )


def _first_pass(supervisor: Supervisor, asked: Asked, batches: list[int]) -> Iterator[PartCost]:
    """Parts at one batch after the other, until their sum is well beyond T_step."""
    for number, batch in enumerate(batches):
        measured = list(_parts(supervisor, asked, batch))
        yield from measured
        if number > 0 and busiest_cpu(measured, asked)[0] > _ENOUGH * asked.t_step_s:
            return


def medians(passes: list[list[PartCost]]) -> list[PartCost]:
    """Each part's median over the passes."""
    seconds: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for part in (part for each in passes for part in each):
        seconds[(part.process, part.part, part.batch)].append(part.seconds)
    return [
        PartCost(process=process, part=name, batch=batch, seconds=median(values))
        for (process, name, batch), values in seconds.items()
    ]


def calibration_batches(batches: list[int]) -> list[int]:
    """From the first, or 8, to the last in steps of two times; always at least two."""
    first, last = max(min(batches), min(8, max(batches))), max(batches)
    found = [first]
    while found[-1] * _FACTOR < last:
        found.append(found[-1] * _FACTOR)
    return [*found, max(last, first * 2)]


def busiest_cpu(parts: list[PartCost], asked: Asked) -> tuple[float, str]:
    """Seconds a step of the CPU with the most to do, and the processes on it."""
    cpus = asked.processes.cpus(_usable())
    seconds: dict[str, float] = defaultdict(float)
    for part in parts:
        seconds[part.process] += part.seconds
    groups: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in seconds:
        pinned = cpus[name]
        groups[(-1 - len(groups),) if pinned is None else tuple(pinned)].append(name)
    loads = {}
    for group, names in groups.items():
        mine = [seconds[name] for name in names]
        loads[" + ".join(names)] = max(sum(mine) / len(group), *mine)
    name = max(loads, key=lambda names: loads[names])
    return loads[name], name


def _usable() -> list[int]:
    from detokbench.bench.machine import usable_cpus

    return usable_cpus()


def _parts(supervisor: Supervisor, asked: Asked, batch: int) -> Iterator[PartCost]:
    known: dict[str, float] = defaultdict(float)
    processes = asked.processes
    fronts = processes.front_ends
    rows = {name: -(-batch // len(fronts)) for name in fronts}
    dealt = rows_each(asked.topology, len(processes.decoding), len(fronts), batch)
    rows |= dict(zip(processes.decoding, dealt, strict=True))

    def part(process: str, name: str, seconds: float) -> PartCost:
        known[process] += max(seconds, 0.0)
        return PartCost(process=process, part=name, batch=batch, seconds=max(seconds, 0.0))

    def cost(process: str, of: Part) -> float:
        request = CalibrateRequest(
            part=of,
            batch=rows[process],
            interval=asked.interval,
            chunk_size=asked.chunk_size,
            max_tokens=asked.max_tokens,
            seconds=_PART_S,
        )
        if not rows[process]:
            return 0.0  # SGLang's router sends it nothing
        answer = supervisor.ask(process, request, Cost)
        return answer.cpu_s / answer.steps

    wire = _cpu_by_step(supervisor, asked, batch, only_receive=True)
    yield part(ENGINE, "emission", wire[ENGINE])
    for name in processes.host:
        yield part(name, "wire", wire[name])
    decoding: dict[str, float] = defaultdict(float)
    for name in processes.decoding:
        floor, decode = cost(name, "floor"), cost(name, "decode")
        decoding[name] = decode - floor
        yield part(name, "decode", decode - floor)
        if asked.stop and asked.topology == "vllm":
            decoding[name] = cost(name, "stop") - floor
            yield part(name, "stop", decoding[name] - (decode - floor))
    for name in processes.front_ends:
        yield part(name, "queue", cost(name, "queue") - decoding[name])
    if asked.http:
        whole = _with_http(supervisor, asked, batch)
        for name in processes.front_ends:
            yield part(name, "HTTP", whole[name] - known[name])
        yield part(CLIENTS, "reading", whole[CLIENTS])


def _cpu_by_step(
    supervisor: Supervisor, asked: Asked, batch: int, only_receive: bool
) -> dict[str, float]:
    """CPU seconds a step of each process in a short run."""
    return _short_run(supervisor, asked, batch, only_receive)[0]


def _with_http(supervisor: Supervisor, asked: Asked, batch: int) -> dict[str, float]:
    """CPU seconds a step of each process over HTTP, from the busiest run without merging.

    A busier host pays less for a chunk, since whoever reads it is awake already: so the pace is
    raised by what the last one cost, a few times.
    """
    slow = replace(asked, t_step_s=_HTTP_SLOWER * asked.t_step_s)
    whole, _ = _short_run(supervisor, slow, batch, only_receive=False)
    for _ in range(_HTTP_ROUNDS):
        busiest_s = max(whole[name] for name in asked.processes.host)
        busy = replace(asked, t_step_s=min(busiest_s / _HTTP_BUSY, slow.t_step_s))
        again, chunks = _short_run(supervisor, busy, batch, only_receive=False)
        if chunks * asked.interval < _NO_MERGING:
            break
        whole = again
    return whole


def _short_run(
    supervisor: Supervisor, asked: Asked, batch: int, only_receive: bool
) -> tuple[dict[str, float], float]:
    """CPU seconds a step of each process, and chunks a token."""
    duration_s = max(_WIRE_S, _WIRE_STEPS * asked.t_step_s)
    answers = run_once(supervisor, asked, batch, duration_s, only_receive=only_receive)
    if answers.error is not None:
        raise answers.error
    view = RunView(answers, asked)
    steps = view.gained((ENGINE,), lambda s: s.steps)
    cpu_s = {name: view.gained((name,), lambda s: s.cpu_ns) * 1e-9 for name in answers.done}
    fronts = asked.processes.front_ends
    chunks = view.gained(fronts, lambda s: s.chunks)
    ids = view.gained(fronts, lambda s: s.delivered)
    return {name: seconds / steps for name, seconds in cpu_s.items()}, chunks / max(ids, 1)
