"""How a front end ends a stream inside a character: one request, by itself."""

from __future__ import annotations

from detokbench.live.engines.seen_streams import SeenStream
from detokbench.live.engines.session import CLIENTS, Session
from detokbench.live.engines.variants import plain
from detokbench.records.frontend import OpenEndSeen

_T_STEP_NS = 5_000_000


def see_open_end(session: Session, engine: str) -> OpenEndSeen | None:
    """What comes of ids that end inside a character; None where the vocabulary splits none."""
    workload = session.workload
    if workload.open_end is None:
        return None
    session.running.engine.pace(_T_STEP_NS)
    row = workload.rows  # the row behind those of the runs
    request = session.one_request(plain(), row, len(workload.open_end.ids))
    seen = session.supervisor.ask(CLIENTS, request, SeenStream)
    session.check()
    text = "".join(chunk.text for chunk in seen.chunks)
    whole = workload.open_end.whole
    if seen.error or not text.startswith(whole):
        why = seen.error or f"the text before it came as {text!r}"
        return OpenEndSeen(engine=engine, whole=whole, behind=None, finish=why)
    return OpenEndSeen(
        engine=engine, whole=whole, behind=text.removeprefix(whole), finish=seen.finish
    )
