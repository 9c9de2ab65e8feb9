"""One front end from its start to its end: grid, variants, the open end, the search."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from detokbench.errors import DetokbenchError
from detokbench.live.engines.front_end import FrontEnd, Launch, Running
from detokbench.live.engines.frontend_plan import Asked
from detokbench.live.engines.frontend_workload import FrontendWorkload
from detokbench.live.engines.open_end import see_open_end
from detokbench.live.engines.search import find_limit, twice
from detokbench.live.engines.session import Session
from detokbench.live.engines.variants import Variant, plain, variants
from detokbench.live.engines.window import Pace, run_window
from detokbench.live.supervise import Supervisor
from detokbench.records.frontend import (
    FrontendDetails,
    FrontendEngine,
    FrontendLimit,
    FrontendRun,
    RunOf,
)

Progress = Callable[[str], None]
_WARM_UP_S = 1.0
LEAST_STEPS = 24
_HEADROOM = 1.1  # over the CPU of the busiest role: where the search begins


class OneEngine:
    """Measures one front end into the details of a record, run by run."""

    def __init__(
        self,
        asked: Asked,
        front_end: FrontEnd,
        version: str,
        workload: FrontendWorkload,
        eos: int,
        supervisor: Supervisor,
        details: FrontendDetails,
        progress: Progress,
    ) -> None:
        self._asked = asked
        self._front_end = front_end
        self._workload = workload
        self._eos = eos
        self._supervisor = supervisor
        self._details = details
        self._progress = progress
        self._facts = FrontendEngine(
            name=front_end.name, summary=front_end.summary, version=version, ready_s=0.0
        )

    def measure(self) -> None:
        """All of it. Raises what ends it early; what was measured until then is in the details."""
        asked, details = self._asked, self._details
        beside = variants(
            self._front_end.name,
            chat=asked.chat,
            stop=asked.stop,
            logprobs=asked.logprobs,
            reasoning_parser=asked.reasoning_parser,
            tool_call_parser=asked.tool_call_parser,
        )
        with self._session(()) as session:
            details.engines.append(self._facts)
            self._warm_up(session, plain())
            for streams, t_step_s in product(asked.streams, asked.t_steps_s):
                if not self._run(session, streams, t_step_s, plain(), "grid").holds:
                    self._run(session, streams, t_step_s, plain(), "grid")
            for variant in beside:
                if not variant.flags:
                    self._beside(session, variant)
            seen = see_open_end(session, self._front_end.name)
            if seen is not None:
                details.open_ends.append(seen)
            if asked.search:
                for streams in asked.streams:
                    details.limits.append(self._limit(session, streams))
        for variant in beside:
            if variant.flags:
                self._with_flags(variant)

    @contextmanager
    def _session(self, flags: tuple[str, ...]) -> Iterator[Session]:
        asked, name = self._asked, self._front_end.name
        self._progress(f"{name}: starting")
        with tempfile.TemporaryDirectory(prefix="dtb-") as folder:
            workload_file = Path(folder) / "workload"
            self._workload.write(workload_file, self._eos)
            launch = Launch(
                python=asked.pythons[name],
                model=asked.model,
                folder=Path(folder),
                max_streams=max(asked.streams),
                workload_file=workload_file,
                front_ends=asked.front_ends,
                extra_args=flags,
                ready_timeout_s=asked.ready_timeout_s,
            )
            begun = time.monotonic()
            with self._front_end.start(launch) as running:
                if not flags:
                    self._facts.ready_s = time.monotonic() - begun
                yield Session(running, self._supervisor, self._workload, asked.max_tokens)

    def _warm_up(self, session: Session, variant: Variant) -> None:
        """What a server does at its first requests of a kind only is in no figure."""
        pace = Pace(max(self._asked.streams), self._asked.t_steps_s[0], 0.0, _WARM_UP_S)
        self._progress(f"{self._front_end.name}: warming up")
        run_window(session, self._front_end.name, pace, variant, "grid")

    def _run(
        self, session: Session, streams: int, t_step_s: float, variant: Variant, of: RunOf
    ) -> FrontendRun:
        effort = self._asked.effort
        warm_up_s, window_s = effort.warm_up_s, effort.window_s
        if of == "search":
            warm_up_s, window_s = effort.search_warm_up_s, effort.search_window_s
        self._progress(f"{self._front_end.name}: {streams} streams at {1e3 * t_step_s:.3g} ms")
        window_s = max(window_s, LEAST_STEPS * t_step_s)
        pace = Pace(streams, t_step_s, warm_up_s, window_s)
        run = run_window(session, self._front_end.name, pace, variant, of)
        self._details.runs.append(run)
        return run

    def _beside(self, session: Session, variant: Variant) -> None:
        """A variant at the most streams and the first T_step, where plain requests ran too."""
        asked = self._asked
        try:
            self._warm_up(session, variant)
            self._run(session, max(asked.streams), asked.t_steps_s[0], variant, "variant")
            missing = stop_check_missing(session.running) if variant.stop else ""
            if missing:
                self._facts.left_out.append(f"the engine's check for {variant.name}: {missing}")
        except DetokbenchError as error:
            session.check()  # a refusal leaves the front end alive
            self._facts.left_out.append(f"{variant.name}: {error}")

    def _with_flags(self, variant: Variant) -> None:
        """A variant for which the server is started anew."""
        try:
            with self._session(variant.flags) as session:
                self._beside(session, variant)
        except DetokbenchError as error:
            self._facts.left_out.append(f"{variant.name}: {error}")

    def _limit(self, session: Session, streams: int) -> FrontendLimit:
        runs = [run for run in self._details.runs if self._is_plain(run, streams)]
        held_s = min((run.t_step_s for run in runs if run.holds), default=None)
        broken = [run.t_step_s for run in runs if not run.holds]
        below = [t for t in broken if held_s is None or t < held_s]
        effort = self._asked.effort

        def holds(t_step_s: float) -> bool:
            return self._run(session, streams, t_step_s, plain(), "search").holds

        found = find_limit(
            twice(holds),
            likely_limit_s(runs),
            shortest_s=effort.shortest_s,
            longest_s=effort.longest_s,
            width=effort.width,
            held_s=held_s,
            broke_s=max(below, default=None),
        )
        runs = [run for run in self._details.runs if self._is_plain(run, streams)]
        at_end = [run for run in runs if run.t_step_s == found.broke_s and not run.holds]
        return FrontendLimit(
            engine=self._front_end.name,
            streams=streams,
            held_s=found.held_s,
            broke_s=found.broke_s,
            is_bound=not at_end or any(run.bound_by for run in at_end),
            why=at_end[-1].why_not if at_end else "",
        )

    def _is_plain(self, run: FrontendRun, streams: int) -> bool:
        return run.engine == self._front_end.name and run.streams == streams and run.of != "variant"


def stop_check_missing(running: Running) -> str:
    """Why stop strings, where they are the engine's job, cost nothing here; empty if they do."""
    says = getattr(running, "stop_check_missing", None)
    return str(says()) if callable(says) else ""


def likely_limit_s(runs: list[FrontendRun]) -> float:
    """Where a search begins: the T_step at which the busiest role would fill its core."""
    fastest = min(runs, key=lambda run: run.t_step_s)
    shares = [role.share for role in fastest.roles if role.role not in {"client", "engine"}]
    return _HEADROOM * max(shares, default=0.5) * fastest.t_step_s
