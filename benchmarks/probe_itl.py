"""Per-token ITL by ``probe`` for 1, 4 and 10 tokens a chunk, against a canned server in real time.

The server, in a process of its own, sends a token's worth of text every 5 ms, however many tokens
a chunk holds; so the ITL per token should be 5 ms in all three, and within 2 % of each other.
Also: how many chunks a second the client takes where the server does not wait.

    python benchmarks/probe_itl.py
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from detokbench.cli import main
from detokbench.live.canned_script import Script
from detokbench.live.canned_server import canned_server

PACE_S = 0.005
TOKENS = 400
WORDS = tuple(f" w{number}" for number in range(TOKENS))


def serve(script: Script, pipe: Connection) -> None:
    """Play a script until told to stop."""
    with canned_server(default=script) as server:
        pipe.send(server.url)
        pipe.recv()


def probe(script: Script, *options: str) -> dict[str, Any]:
    """The record of a probe of a server that plays this."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(script, theirs))
    process.start()
    try:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
            out = Path(folder) / "probe.json"
            with redirect_stderr(StringIO()):
                main(["probe", ours.recv(), "--out", str(out), "--no-chart", "--no-compare",
                      *options])  # fmt: skip
            record: dict[str, Any] = json.loads(out.read_text())
            return record
    finally:
        ours.send(None)
        process.join()


def pace(per_chunk: int) -> float:
    """Mean ITL per token at a paced server, in seconds."""
    script = Script(tokens=WORDS, per_chunk=per_chunk, pace_s=PACE_S, usage="continuous")
    details = probe(script, "--requests", "8", "--concurrency", "4")["details"]
    itl, gap = details["itl"]["mean_s"], details["chunk_gap"]["mean_s"]
    print(
        f"{per_chunk:3} tokens a chunk: ITL {1000 * itl:.4f} ms a token, "
        f"gap {1000 * gap:7.4f} ms a chunk, client {details['client']['cpu_share']:.0%} of a core"
    )
    return float(itl)


def flood() -> None:
    """Chunks a second where the server sends as fast as it can, at 32 streams."""
    script = Script(tokens=WORDS, usage="continuous")
    details = probe(script, "--requests", "256", "--concurrency", "32")["details"]
    chunks = sum(facts["chunks"] for facts in details["requests"])
    client = details["client"]
    print(
        f"unpaced: {chunks / client['wall_s']:,.0f} chunks a second, client "
        f"{client['cpu_share']:.0%} of a core"
    )


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    found = [pace(per_chunk) for per_chunk in (1, 4, 10)]
    apart = max(found) / min(found) - 1
    print(f"apart by {apart:.2%} (limit 2 %)")
    flood()
    sys.exit(apart > 0.02)
