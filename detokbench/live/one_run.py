"""One run of a pipeline whose processes are loaded: listeners first, the engine last."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import msgspec

from detokbench.errors import DetokbenchError, usage_error
from detokbench.live.counting import SAMPLE_S, Sample
from detokbench.live.plan import Bound, CheckRequest, Done, RunRequest
from detokbench.live.setup import Asked
from detokbench.live.supervise import Supervisor
from detokbench.live.texts import Checked
from detokbench.live.topology import CLIENTS, ENGINE

WARM_UP_SHARE = 0.25
_LONGEST_WARM_UP_S = 2.0
_STEPS_AT_LEAST = 20
_SHORTEST_S = 2 * SAMPLE_S  # a sample lies between the warm-up and the end
_BIND_S = 30.0
# After the engine's end the others work off what waits; a host five times too slow gets there.
_DRAIN_FACTOR = 6.0
_DRAIN_LEAST_S = 20.0

_numbers = count()


@dataclass
class Answers:
    """What the processes measured in one run. ``error`` is what ended it early, if anything did."""

    request: RunRequest
    done: dict[str, Done] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    memory: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    checked: Checked | None = None
    error: BaseException | None = None


def check_duration(duration_s: float, t_step_s: float) -> None:
    """Raises a usage error for a run too short to say anything, which names the least."""
    from detokbench.report.units import given

    least_s = max(_STEPS_AT_LEAST * t_step_s, _SHORTEST_S)
    if duration_s < least_s * (1 - 1e-9):
        raise usage_error(
            f"--duration: {given(duration_s)} is too short; with this --t-step a run needs at "
            f"least {given(least_s)} ({_STEPS_AT_LEAST} steps, and a sample after the warm-up)"
        )


def run_once(
    supervisor: Supervisor,
    asked: Asked,
    batch: int,
    duration_s: float,
    only_receive: bool = False,
) -> Answers:
    """Run, and collect. A process that dies, or Ctrl-C, ends it early: see ``Answers.error``."""
    request = RunRequest(
        name="",
        folder=supervisor.folder,
        batch=batch,
        t_step_ns=round(asked.t_step_s * 1e9),
        duration_s=duration_s,
        warm_up_s=min(WARM_UP_SHARE * duration_s, _LONGEST_WARM_UP_S),
        interval=asked.interval,
        chunk_size=asked.chunk_size,
        arrival=asked.arrival,
        rate=asked.rate,
        max_tokens=asked.max_tokens,
        http=asked.http and not only_receive,
        front_ends=asked.front_ends,
        detokenizers=asked.detokenizers,
        only_receive=only_receive,
    )
    answers = Answers(request)
    supervisor.begin_run()
    names = [n for n in asked.processes.names if n != CLIENTS or request.http]
    try:
        _start(supervisor, asked, request)
        limit_s = duration_s * _DRAIN_FACTOR + _DRAIN_LEAST_S
        for name in names:
            answers.done[name] = supervisor.wait_for(name, "done", Done, timeout_s=limit_s)
    except (DetokbenchError, KeyboardInterrupt) as error:
        answers.error = error
        _stop(supervisor, names, answers, isinstance(error, KeyboardInterrupt))
    answers.samples = {name: list(samples) for name, samples in supervisor.samples.items()}
    answers.memory = {name: list(weighed) for name, weighed in supervisor.memory.items()}
    if answers.error is None and not only_receive:
        answers.checked = _check(supervisor, answers)
    return answers


def _start(supervisor: Supervisor, asked: Asked, request: RunRequest) -> None:
    """From the end of the line to its beginning, so that nobody sends to who does not listen."""
    processes = asked.processes
    run = next(_numbers)
    structs = msgspec.structs

    def begin(name: str, **changes: object) -> Bound:
        mine = structs.replace(request, name=f"{run}-{name}", **changes)
        supervisor.send(name, mine)
        return supervisor.wait_for(name, "bound", Bound, _BIND_S)

    aborts = supervisor.loaded[ENGINE].abort_address
    front_ends = [begin(name, abort_to=aborts) for name in processes.front_ends]
    next_to = [bound.address for bound in front_ends]
    if processes.detokenizers:
        next_to = [begin(name, sends_to=next_to).address for name in processes.detokenizers]
    announce_to = None
    if request.http:
        announce_to = begin(CLIENTS, urls=[bound.port for bound in front_ends]).address
    begin(ENGINE, sends_to=next_to, announce_to=announce_to)


def _stop(supervisor: Supervisor, names: list[str], answers: Answers, by_hand: bool) -> None:
    """Ctrl-C ends the engine, and with its last message all others; else all are told."""
    left = [name for name in names if name not in answers.done]
    try:
        if by_hand and ENGINE in left:
            supervisor.tell_to_stop(ENGINE)
            supervisor.settle(left)
        answers.done.update(supervisor.stop(left, Done))
    except KeyboardInterrupt:
        pass  # a second one: what there is must do


def _check(supervisor: Supervisor, answers: Answers) -> Checked:
    streams = [
        (stream.request, stream.text, stream.finish)
        for done in answers.done.values()
        for stream in done.streams
    ]
    return supervisor.ask(ENGINE, CheckRequest(texts=streams), Checked)
