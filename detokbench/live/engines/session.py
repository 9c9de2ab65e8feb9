"""One front end that runs, with our engine behind it and our clients in front."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from detokbench.errors import DetokbenchError
from detokbench.live.engines.client_plan import OneRequest, StreamsRequest
from detokbench.live.engines.front_end import Process, Role, Running
from detokbench.live.engines.frontend_workload import FrontendWorkload
from detokbench.live.engines.variants import Variant
from detokbench.live.plan import Bound
from detokbench.live.supervise import Supervisor

CLIENTS = "clients"
CLIENT_MODULES = {CLIENTS: "detokbench.live.engines.clients"}
_IDLE_S = 30.0
_POLL_S = 0.02
_MOST_KEPT = 150_000
"""Chunks of one run that are looked at: more would take longer to read than to run."""


@dataclass
class Session:
    """``next_request`` counts on through all runs, so that no request is asked for twice."""

    running: Running
    supervisor: Supervisor
    workload: FrontendWorkload
    max_tokens: int
    next_request: int = 0

    @property
    def file(self) -> Path:
        """Where the clients leave what they saw."""
        return Path(self.supervisor.folder) / "seen.msgpack"

    def roles(self) -> dict[str, list[Role]]:
        """The front end's own, our engine's, and the clients'."""
        return {
            **self.running.roles(),
            "client": [Process(self.supervisor.pids[CLIENTS])],
        }

    def check(self) -> None:
        """Raises DetokbenchError where a process of the front end has died."""
        self.running.check()

    def wait_idle(self) -> None:
        """Until the engine has nobody left. Raises DetokbenchError where that takes too long."""
        end = time.monotonic() + _IDLE_S
        while time.monotonic() < end:
            self.check()
            sample = self.running.engine.sample()
            if not sample.running and not sample.waiting:
                return
            time.sleep(_POLL_S)
        raise DetokbenchError(
            f"after a run the front end has left requests running for {_IDLE_S:g} s: "
            f"{self.running.log_tail()}"
        )

    def open_streams(self, streams: int, variant: Variant, expected_ids: float) -> None:
        """Tell the clients to begin; returns when all streams are open."""
        host, port = _host_and_port(self.running.url)
        self.supervisor.send(
            CLIENTS,
            StreamsRequest(
                host=host,
                port=port,
                path=variant.path,
                bodies=[
                    variant.body(self.running.model, prompt)
                    for prompt in self.workload.prompts[: self.workload.rows]
                ],
                number_field=number_field(self.running),
                stride=len(self.workload.outputs),
                first=self.next_request,
                streams=streams,
                max_tokens=self.max_tokens,
                keep_every=max(int(expected_ids / _MOST_KEPT), 0) + 1,
                file=str(self.file),
            ),
        )
        self.supervisor.wait_for(CLIENTS, "bound", Bound, timeout_s=60)

    def one_request(self, variant: Variant, number: int, max_tokens: int) -> OneRequest:
        """A request by itself, for the row with this number."""
        host, port = _host_and_port(self.running.url)
        prompt = self.workload.prompts[number % self.workload.rows]
        field = number_field(self.running)
        body = variant.body(self.running.model, prompt)
        return OneRequest(
            host=host,
            port=port,
            path=variant.path,
            body=f'{body},"{field}":{number},"max_tokens":{max_tokens}}}',
            number=number,
            max_tokens=max_tokens,
            timeout_s=20.0,
        )


def number_field(running: Running) -> str:
    """The field of a request that carries its number to our engine."""
    return str(getattr(running, "number_field", "seed"))


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.hostname is None or parts.port is None:
        raise DetokbenchError(f"a front end's address needs a host and a port: {url}")
    return parts.hostname, parts.port
