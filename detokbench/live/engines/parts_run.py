"""The parts of vLLM's Python front end beside the whole of it, in turns."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from detokbench.errors import DetokbenchError
from detokbench.live.engines.client_plan import ClientsDone
from detokbench.live.engines.front_end import Launch, Process, Running
from detokbench.live.engines.frontend_workload import FrontendWorkload
from detokbench.live.engines.profile_parts import read_stacks, sorted_into_parts
from detokbench.live.engines.sampling import sampled
from detokbench.live.engines.session import CLIENT_MODULES, CLIENTS, Session
from detokbench.live.engines.variants import plain
from detokbench.live.engines.vllm_front_end import MODEL_NAME, VllmFrontEnd
from detokbench.live.engines.vllm_parts import BELOW, RUNGS
from detokbench.live.engines.vllm_rungs import Driven, RungProcess, step_messages
from detokbench.live.engines.window import Pace, run_window
from detokbench.live.supervise import Supervisor
from detokbench.records.frontend import CHUNKS_AT_LEAST
from detokbench.records.frontend_parts import PartsAt, PartsDetails, PartSeen

_CLIENTS_END_S = 120.0
_FURTHER_TRIES = 3
_ENDLESS = 1 << 20
_KEPT_NONE = 1e9


@dataclass(frozen=True)
class PartsAsked:
    """``python`` has vLLM; ``long_tokens`` are the ids of the requests of a second kind."""

    python: Path
    model: Path
    workload: FrontendWorkload
    eos: int
    streams: list[int]
    t_step_s: float
    rounds: int
    warm_up_s: float
    window_s: float
    max_tokens: int
    long_tokens: int
    profile_s: float


def run_parts(asked: PartsAsked, progress: Callable[[str], None]) -> PartsDetails:
    """Measure it all. Raises DetokbenchError for what is missing, and where a process dies."""
    VllmFrontEnd().version(asked.python)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dtb-")))
        progress("starting vLLM twice: whole, and in parts")
        supervisor = stack.enter_context(Supervisor(CLIENT_MODULES))
        rungs = stack.enter_context(RungProcess(asked.python, asked.model, folder))
        running = stack.enter_context(VllmFrontEnd().start(_launch(asked, folder)))
        whole = Session(running, supervisor, asked.workload, asked.max_tokens)
        meter = _Meter(asked, rungs, whole)
        meter.whole(
            max(asked.streams), asked.max_tokens
        )  # what first requests cost is in no figure
        at = [_empty(streams) for streams in asked.streams]
        for number in range(asked.rounds):
            for one in at:
                progress(f"round {number + 1} of {asked.rounds}: {one.streams} streams")
                meter.round(one)
        progress("profile of the whole")
        profile, samples = sorted_into_parts(read_stacks(meter.profile(folder)))
        return PartsDetails(
            engine="vllm",
            version=running.version,
            loop=str(rungs.facts["loop"]),
            parser=str(rungs.facts["parser"]),
            t_step_s=asked.t_step_s,
            window_s=asked.window_s,
            max_tokens=asked.max_tokens,
            long_tokens=asked.long_tokens,
            at=at,
            profile=profile,
            profile_samples=samples,
            chunks_per_token=min(meter.chunks_per_token),
        )


class _Meter:
    """``chunks_per_token``: of each run whose figure was taken."""

    def __init__(self, asked: PartsAsked, rungs: RungProcess, whole: Session) -> None:
        self._asked = asked
        self._rungs = rungs
        self._whole = whole
        self.chunks_per_token: list[float] = []

    def round(self, at: PartsAt) -> None:
        """Every rung once, and the whole before and behind; parts as differences of neighbours."""
        asked, streams = self._asked, at.streams
        at.whole_rounds_s.append(self._take(lambda: self.whole(streams, asked.max_tokens)))
        costs = {rung: self._take(partial(self.rung, rung, streams)) for rung in RUNGS}
        at.long_rounds_s.append(self._take(lambda: self.whole(streams, asked.long_tokens)))
        for part in at.parts:
            below = BELOW.get(part.name)
            part.rounds_s.append(costs[part.name] - (costs[below] if below else 0.0))

    def _take(self, measure: Callable[[], Driven]) -> float:
        """The first of a few tries in which tokens did not come together, else the best of them.

        On a busy machine they do, and cost less each.
        """
        best = measure()
        for _ in range(_FURTHER_TRIES):
            if _chunks(best) >= CHUNKS_AT_LEAST:
                break
            best = max(best, measure(), key=_chunks)
        self.chunks_per_token.append(_chunks(best))
        return best.s_per_token

    def whole(self, streams: int, max_tokens: int, window_s: float | None = None) -> Driven:
        """The real server, with requests of so many ids."""
        asked, session = self._asked, self._whole
        session.max_tokens = max_tokens
        pace = Pace(streams, asked.t_step_s, asked.warm_up_s, window_s or asked.window_s)
        run = run_window(session, "vllm", pace, plain(), "grid")
        cost = run.cpu("http")
        if run.wrong or not cost:
            raise DetokbenchError(f"the whole front end: {run.wrong} texts are wrong")
        return Driven(cost, run.chunks_per_token)

    def profile(self, folder: Path) -> str:
        """py-spy's samples of the server at the most streams. They are slowed down by it."""
        asked = self._asked
        first = self._whole.running.roles()["http"][0]
        assert isinstance(first, Process)
        with sampled(first.pid, asked.profile_s, folder) as read:
            self.whole(max(asked.streams), asked.max_tokens, asked.profile_s + 1.0)
            return read()

    def rung(self, name: str, streams: int) -> Driven:
        """A rung; below ``hand-over`` nothing can come together."""
        asked = self._asked
        warm_up, steps = (round(s / asked.t_step_s) for s in (asked.warm_up_s, asked.window_s))
        ids = [f"cmpl-{uuid.uuid4().hex}-0-{place:08x}" for place in range(streams)]
        messages = step_messages(ids, asked.workload.outputs, warm_up + steps, asked.t_step_s)
        with self._rungs.rung(name, ids) as port, self._readers(port, streams) as read:
            driven = self._rungs.drive(messages, streams, asked.t_step_s, warm_up)
            if read is None:
                return driven
            return driven._replace(chunks_per_token=read() / (streams * len(messages)))

    @contextmanager
    def _readers(self, port: int | None, streams: int) -> Iterator[Callable[[], int] | None]:
        """The clients of the whole, on a rung that has a port; they say how many events came."""
        if port is None:
            yield None
            return
        whole = self._whole
        running = SimpleNamespace(url=f"http://127.0.0.1:{port}", model=MODEL_NAME)
        session = Session(cast(Running, running), whole.supervisor, whole.workload, _ENDLESS)
        session.open_streams(streams, plain(), _KEPT_NONE)
        try:
            self._rungs.wait_for_requests(streams)
            yield lambda: self._end_readers().events
        except BaseException:
            with suppress(DetokbenchError):
                self._end_readers()
            raise

    def _end_readers(self) -> ClientsDone:
        supervisor = self._whole.supervisor
        supervisor.tell_to_stop(CLIENTS)
        return supervisor.wait_for(CLIENTS, "done", ClientsDone, _CLIENTS_END_S)


def _chunks(driven: Driven) -> float:
    return 1.0 if driven.chunks_per_token is None else driven.chunks_per_token


def _empty(streams: int) -> PartsAt:
    parts = [PartSeen(name=rung, rounds_s=[], in_sum=rung != "stop") for rung in RUNGS]
    return PartsAt(streams=streams, parts=parts, whole_rounds_s=[], long_rounds_s=[])


def _launch(asked: PartsAsked, folder: Path) -> Launch:
    workload_file = folder / "workload"
    asked.workload.write(workload_file, asked.eos)
    return Launch(asked.python, asked.model, folder, max(asked.streams), workload_file)
