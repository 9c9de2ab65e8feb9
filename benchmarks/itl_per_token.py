"""ITL per token for 1, 4 and 10 tokens a chunk: by ``probe``, and by ``pipeline``'s own clients.

``probe`` reads a canned server, in a process of its own, that sends a token's worth of text every
5 ms however many tokens a chunk holds; ``pipeline`` runs vLLM's topology over HTTP at T_step 5 ms
with ``--stream-interval`` 1, 4 and 10. So ITL per token should be 5 ms in all six, and each three
within 2 % of each other. Also: how many chunks a second the probe takes where nothing is paced.

    python benchmarks/itl_per_token.py [FOLDER FOR THE RECORDS]
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


def details_of(out: Path, *arguments: str) -> dict[str, Any]:
    """The details of the record that a command makes."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        code = main([*arguments, "--out", str(out)])
    if code:
        sys.exit(f"detokbench {' '.join(arguments)}: exit code {code}")
    details: dict[str, Any] = json.loads(out.read_text())["details"]
    return details


def probe(script: Script, out: Path, *options: str) -> dict[str, Any]:
    """What a probe says of a server that plays this."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(script, theirs))
    process.start()
    try:
        return details_of(out, "probe", ours.recv(), *options)
    finally:
        ours.send(None)
        process.join()


def paced_probe(per_chunk: int, folder: Path) -> float:
    """Mean ITL per token at a paced server, in seconds."""
    script = Script(tokens=WORDS, per_chunk=per_chunk, pace_s=PACE_S, usage="continuous")
    out = folder / f"probe-{per_chunk}-a-chunk.json"
    details = probe(script, out, "--requests", "8", "--concurrency", "4", "--no-compare")
    itl, gap = details["itl"]["mean_s"], details["chunk_gap"]["mean_s"]
    say("probe", per_chunk, itl, gap, details["client"]["cpu_share"])
    return float(itl)


def paced_pipeline(per_chunk: int, folder: Path) -> float:
    """Mean ITL per token at the clients of a pipeline, in seconds."""
    details = details_of(
        folder / f"pipeline-{per_chunk}-a-chunk.json", "pipeline", "--batch", "16", "--t-step",
        f"{PACE_S * 1000:g}ms", "--stream-interval", str(per_chunk),
    )  # fmt: skip
    (run,) = details["runs"]
    say("pipeline", per_chunk, run["itl"]["mean"], run["gap"]["mean"], run["client_share"])
    return float(run["itl"]["mean"])


def say(who: str, per_chunk: int, itl_s: float, gap_s: float, share: float) -> None:
    """One line."""
    print(
        f"{who:8} {per_chunk:3} tokens a chunk: ITL {1000 * itl_s:.4f} ms a token, "
        f"gap {1000 * gap_s:7.4f} ms a chunk, client {share:.0%} of a core",
        flush=True,
    )


def flood(folder: Path) -> None:
    """Chunks a second where the server sends as fast as it can, at 32 streams."""
    script = Script(tokens=WORDS, usage="continuous")
    out = folder / "probe-unpaced.json"
    details = probe(script, out, "--requests", "256", "--concurrency", "32", "--no-compare")
    chunks = sum(facts["chunks"] for facts in details["requests"])
    client = details["client"]
    print(
        f"unpaced: {chunks / client['wall_s']:,.0f} chunks a second, client "
        f"{client['cpu_share']:.0%} of a core"
    )


def run(folder: Path) -> bool:
    """Whether both agree within 2 %."""
    apart = []
    for measure in (paced_probe, paced_pipeline):
        found = [measure(per_chunk, folder) for per_chunk in (1, 4, 10)]
        apart.append(max(found) / min(found) - 1)
        print(f"apart by {apart[-1]:.2%} (limit 2 %)")
    flood(folder)
    return max(apart) <= 0.02


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    if len(sys.argv) > 1:
        sys.exit(not run(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(not run(Path(temporary)))
