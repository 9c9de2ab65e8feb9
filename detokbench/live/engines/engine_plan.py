"""The messages of the control channel, as JSON: what an engine of ours is asked, and answers.

An engine that runs inside another project's process reads the same JSON with plain dicts, so the
field names here are the interface. Times are ns of ``time.perf_counter_ns`` (CLOCK_MONOTONIC on
Linux); a step is counted from the engine's first one, through all changes of pace.
"""

from __future__ import annotations

import msgspec


class Pace(msgspec.Struct, tag_field="do", tag="pace"):
    """From the next step on, one step every ``t_step_ns``; every ``interval`` steps a row is sent.

    ``interval`` is SGLang's ``stream_interval``; vLLM's front end has a flag of its own, and its
    engine takes 1 only.
    """

    t_step_ns: int
    interval: int = 1


class AskSample(msgspec.Struct, tag_field="do", tag="sample"):
    """Ask for the totals so far."""


class AskSteps(msgspec.Struct, tag_field="do", tag="steps"):
    """Ask when the steps from ``since`` on were emitted, as far as they are still known."""

    since: int


class AskStreams(msgspec.Struct, tag_field="do", tag="streams"):
    """Ask which requests have begun since this was last asked."""


class Stop(msgspec.Struct, tag_field="do", tag="stop"):
    """End the engine's process."""


EngineRequest = Pace | AskSample | AskSteps | AskStreams | Stop


class Agreed(msgspec.Struct):
    """The answer to ``Pace`` and ``Stop``."""

    ok: bool = True


class Failed(msgspec.Struct):
    """The answer in place of any other where a request cannot be met: one line that says why."""

    error: str


class EngineSample(msgspec.Struct):
    """Totals since the engine began, but for ``worst_ns``.

    ``steps`` counts steps begun, ``late_steps`` those that began late (``live.schedule.LATE_NS``);
    ``worst_ns`` is the latest since the sample before. ``ids`` and ``rows`` are those sent,
    ``running`` and ``waiting`` the requests at this moment, ``cpu_ns`` the CPU time of the
    engine's process. ``first_step`` is the oldest step whose emission time is still held.
    ``aborted`` counts the requests that the front end ended, ``finished`` those that ran out.
    """

    at_ns: int
    steps: int
    late_steps: int
    worst_ns: int
    ids: int
    rows: int
    running: int
    waiting: int
    cpu_ns: int
    first_step: int = 0
    finished: int = 0
    aborted: int = 0


class StepTimes(msgspec.Struct):
    """When each step from ``first`` on was emitted, in ns, whether anybody was running or not."""

    first: int
    emitted_ns: list[int]


class StartedStream(msgspec.Struct, array_like=True):
    """A request: id i of its ``ids`` ids is emitted in step ``first_step + i``.

    ``number`` is the ``seed`` that it carried (-1 without one), ``request_id`` what the front end
    calls it. With an interval k above 1 its first id goes at once and then k together, as SGLang
    has it: id i in step ``first_step + k * ceil(i / k)``, the last ones with the request's end.
    """

    number: int
    first_step: int
    ids: int
    request_id: str


class StartedStreams(msgspec.Struct):
    """The answer to ``AskStreams``."""

    streams: list[StartedStream]
