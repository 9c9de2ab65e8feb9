"""The clients' self-test: what they can read, before anything is said about what they did read."""

from __future__ import annotations

from detokbench.live.blast import Blasted
from detokbench.live.plan import BlastRequest, Bound, ReadBlastRequest
from detokbench.live.supervise import Supervisor
from detokbench.live.topology import CLIENTS, ENGINE
from detokbench.records.pipeline import SelfTest

_STREAMS = 32
_SECONDS = 1.0


def test_clients(supervisor: Supervisor) -> SelfTest:
    """Events and reads a second that the clients' process takes, draining."""
    supervisor.send(ENGINE, BlastRequest(streams=_STREAMS, seconds=_SECONDS))
    port = supervisor.wait_for(ENGINE, "bound", Bound).port
    read = supervisor.ask(CLIENTS, ReadBlastRequest(port=port, streams=_STREAMS), Blasted)
    supervisor.wait_for(ENGINE, "done", Blasted)
    return SelfTest(
        events_per_s=read.events / read.wall_s,
        reads_per_s=read.reads / read.wall_s,
        cpu_share=read.cpu_s / read.wall_s,
    )
