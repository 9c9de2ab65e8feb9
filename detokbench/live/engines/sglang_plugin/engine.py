"""The engine without any wire: what runs, what a step sends, and what the supervisor is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .clock import StepClock
from .rows import Row

HEALTH_CHECK = "HEALTH_CHECK"


class Engine:
    """Requests come in by ``admit``, leave at their end or by ``abort``; ``step`` is a step.

    ``cpu_ns`` reads the CPU time of what of this process is ours.
    """

    def __init__(self, clock: StepClock, interval: int, cpu_ns: Callable[[], int]) -> None:
        """``interval`` is the server's ``stream_interval``."""
        self.clock = clock
        self.stopping = False
        self._server_interval = self.interval = interval
        self._cpu_ns = cpu_ns
        self._running: list[Row] = []
        self._waiting: list[Row] = []
        self._begun: list[tuple[int, int, int, str]] = []
        self._ids = self._sent_rows = self._finished = self._aborted = 0

    def admit(self, row: Row) -> None:
        """It runs from the next step on."""
        self._waiting.append(row)

    def abort(self, rid: str, every: bool = False) -> None:
        """Those whose id begins with ``rid``, as SGLang has it, end with the next step."""
        for row in (*self._running, *self._waiting):
            if not row.aborted and (every or (rid and row.rid.startswith(rid))):
                row.abort()
                self._aborted += 1

    def step(self, now_ns: int) -> list[Row]:
        """The next step begins; returns the rows that send in it."""
        step = self.clock.steps
        self.clock.begin(now_ns)
        if self._waiting:
            self._begun += [
                (row.number, step, row.total, row.rid)
                for row in self._waiting
                if not row.rid.startswith(HEALTH_CHECK)
            ]
            self._running += self._waiting
            self._waiting = []
        sending = [row for row in self._running if row.advance()]
        if any(row.finish for row in sending):
            running = [row for row in self._running if row.finish is None]
            self._finished += sum(not row.aborted for row in sending if row.finish)
            self._running = running
        self._ids += sum(row.at - row.sent for row in sending)
        self._sent_rows += len(sending)
        return sending

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What the supervisor gets (detokbench.live.engines.engine_plan has the fields)."""
        match asked.get("do"):
            case "pace":
                self.clock.pace(int(asked["t_step_ns"]), time.perf_counter_ns())
                interval = int(asked.get("interval", 1))
                self.interval = interval if interval > 1 else self._server_interval
                return {"ok": True}
            case "sample":
                return self._sample()
            case "steps":
                first, emitted = self.clock.times(int(asked["since"]))
                return {"first": first, "emitted_ns": emitted}
            case "streams":
                begun, self._begun = self._begun, []
                return {"streams": begun}
            case "stop":
                self.stopping = True
                return {"ok": True}
        return {"error": f"unknown request {asked.get('do')!r}"}

    def _sample(self) -> dict[str, int]:
        clock = self.clock
        return {
            "at_ns": time.perf_counter_ns(),
            "steps": clock.steps,
            "late_steps": clock.late_steps,
            "worst_ns": clock.take_worst(),
            "ids": self._ids,
            "rows": self._sent_rows,
            "running": len(self._running),
            "waiting": len(self._waiting),
            "cpu_ns": self._cpu_ns(),
            "first_step": clock.first_held(),
            "finished": self._finished,
            "aborted": self._aborted,
        }
