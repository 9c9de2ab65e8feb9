"""One run: streams are opened at a pace, and watched for a window of time."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.live.engines.client_plan import ClientsDone
from detokbench.live.engines.cpu_by_role import CpuMeter
from detokbench.live.engines.engine_plan import EngineSample
from detokbench.live.engines.figures import Emitted, Figures, window_figures
from detokbench.live.engines.front_end_judge import BOUND_FROM, STEPS_AT_LEAST, why_not
from detokbench.live.engines.seen_streams import SeenStream
from detokbench.live.engines.session import CLIENTS, Session
from detokbench.live.engines.text_check import check_texts
from detokbench.live.engines.variants import Variant
from detokbench.live.quantiles import quantiles
from detokbench.live.texts import Checked
from detokbench.records.frontend import BoundBy, FrontendRun, RoleCpu, RunOf
from detokbench.records.pipeline import Quantiles

_LOOK_S = 1.0
_READ_S = 120.0


@dataclass(frozen=True)
class Pace:
    """What is run: ``warm_up_s`` from when all streams are open, then the window."""

    streams: int
    t_step_s: float
    warm_up_s: float
    window_s: float


@dataclass(frozen=True)
class _Watched:
    """Of one window: the engine's totals at both ends, and CPU by role between them, in ns."""

    begin: EngineSample
    end: EngineSample
    cpu_ns: dict[str, int]

    @property
    def length_ns(self) -> int:
        return self.end.at_ns - self.begin.at_ns


def run_window(
    session: Session, engine: str, pace: Pace, variant: Variant, of: RunOf
) -> FrontendRun:
    """Run once. Raises DetokbenchError where a process dies or the front end refuses a request."""
    try:
        return _run(session, engine, pace, variant, of)
    except DetokbenchError:
        session.check()  # a process that has died says more than what it has not answered
        raise


def _run(session: Session, engine: str, pace: Pace, variant: Variant, of: RunOf) -> FrontendRun:
    session.wait_idle()
    control = session.running.engine
    control.pace(round(pace.t_step_s * 1e9))
    control.streams()
    before = control.sample()
    expected = pace.streams * (pace.warm_up_s + pace.window_s) / pace.t_step_s
    session.open_streams(pace.streams, variant, expected)
    watched, done = _watch_to_the_end(session, pace)
    after = control.sample()
    begun = {stream.number: stream.first_step for stream in control.streams()}
    times = control.steps(before.steps)
    streams = msgspec.msgpack.decode(session.file.read_bytes(), type=list[SeenStream])
    figures = window_figures(
        streams,
        session.workload.text_of,
        Emitted(times.first, times.emitted_ns, begun),
        watched.begin.at_ns,
        watched.end.at_ns,
        round(pace.t_step_s * 1e9),
    )
    checked = check_texts(streams, session.workload.text_of, variant.stop, variant.is_chat)
    all_ids = after.ids - before.ids
    events = done.events / all_ids if all_ids else None
    return _facts(engine, pace, variant, of, watched, figures, checked, done, events)


def _watch_to_the_end(session: Session, pace: Pace) -> tuple[_Watched, ClientsDone]:
    """The window, and what the clients answer when they are told to end."""
    try:
        watched = _watch(session, pace)
    except DetokbenchError:
        with suppress(DetokbenchError):
            _end(session)
        raise
    return watched, _end(session)


def _watch(session: Session, pace: Pace) -> _Watched:
    _sleep(session, pace.warm_up_s, None)
    session.check()
    meter = CpuMeter(session.roles)
    begin = session.running.engine.sample()
    _sleep(session, pace.window_s, meter)
    cpu_ns = meter.look()
    end = session.running.engine.sample()
    cpu_ns.setdefault("engine", end.cpu_ns - begin.cpu_ns)
    return _Watched(begin, end, cpu_ns)


def _sleep(session: Session, seconds: float, meter: CpuMeter | None) -> None:
    """Sleep in short parts, to look whether all processes live and what they use."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK_S))
        session.check()
        if meter is not None and left > _LOOK_S:
            meter.look()


def _end(session: Session) -> ClientsDone:
    session.supervisor.tell_to_stop(CLIENTS)
    done = session.supervisor.wait_for(CLIENTS, "done", ClientsDone, _READ_S)
    session.next_request += done.requests
    if done.error:
        session.check()
        raise DetokbenchError(f"{done.error} (server's log: {session.running.log_tail()})")
    return done


def _facts(
    engine: str,
    pace: Pace,
    variant: Variant,
    of: RunOf,
    watched: _Watched,
    figures: Figures,
    checked: Checked,
    done: ClientsDone,
    events_per_token: float | None,
) -> FrontendRun:
    ids = watched.end.ids - watched.begin.ids
    steps = watched.end.steps - watched.begin.steps
    steps_share = steps * pace.t_step_s / (watched.length_ns * 1e-9)
    roles = [
        RoleCpu(
            role=role,
            s_per_token=used * 1e-9 / ids if ids else None,
            share=used / watched.length_ns,
        )
        for role, used in watched.cpu_ns.items()
    ]
    broken = why_not(figures.stretch, figures.chunks_per_token)
    return FrontendRun(
        engine=engine,
        of=of,
        variant=variant.name,
        streams=pace.streams,
        t_step_s=pace.t_step_s,
        window_s=watched.length_ns * 1e-9,
        steps=steps,
        late_steps=watched.end.late_steps - watched.begin.late_steps,
        worst_late_s=watched.end.worst_ns * 1e-9,
        steps_share=steps_share,
        ids=ids,
        requests=done.requests,
        roles=roles,
        chunks_per_token=figures.chunks_per_token,
        events_per_token=events_per_token,
        events_per_read=done.events / done.reads if done.reads else None,
        stretch=figures.stretch,
        stretch_streams=len(figures.stretches),
        itl=_short(figures.itl),
        lag=_short(figures.lag),
        ttft=_short(figures.ttft),
        holds=not broken,
        why_not=broken,
        bound_by=_bound_by(roles, steps, watched.length_ns * 1e-9 / pace.t_step_s),
        kept_share=done.kept / done.requests if done.requests else 0.0,
        checked=checked.checked,
        wrong=checked.wrong,
        first_difference=checked.first,
    )


def _bound_by(roles: list[RoleCpu], steps: int, due: float) -> BoundBy:
    shares = {role.role: role.share for role in roles}
    if shares.get("client", 0.0) > BOUND_FROM:
        return "client"
    if steps + 1 < STEPS_AT_LEAST * due:  # a window may begin and end within a step
        return "engine"
    return ""


def _short(values: list[tuple[int, int]]) -> Quantiles:
    """A distribution without its curve, of which a record would hold too many."""
    return msgspec.structs.replace(quantiles(values), curve=[])
