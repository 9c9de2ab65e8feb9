"""A ``probe`` record from stored bytes and times, without a server."""

from detokbench.live.canned_script import Script, frames
from detokbench.live.probe_asked import Asked
from detokbench.live.probe_checks import compare_texts, curve_of, hold_back
from detokbench.live.probe_dialect import Dialect
from detokbench.live.probe_fetch import Limits, Raw
from detokbench.live.probe_judge import judge
from detokbench.live.probe_load import Load, Looks
from detokbench.live.probe_prompts import Prompt
from detokbench.live.probe_record import record_of
from detokbench.live.probe_run import Collected
from detokbench.live.probe_url import parse_server
from detokbench.records.probe import LoadPoint

TEXT = tuple(f" word{number}" for number in range(60))
MACHINE = {
    "cpu": "A CPU", "cpus_usable": 2, "python": "CPython 3.11.7", "busy_percent": 1.0,
    "governor": None,
}  # fmt: skip


def stream(script, stop=(), sent_s=100.0, ended="end"):
    """The bytes of a script, each frame a read at the moment at which it is due."""
    reads = [
        (sent_s + frame.due_s, f"data: {frame.data}\n\n".encode())
        for frame in frames(script, chat=False, stop=list(stop))
    ]
    return Raw(
        "a prompt", sent_s, reads, 200, "text/event-stream", ended,
        ended_s=reads[-1][0], size=sum(len(data) for _, data in reads),
    )  # fmt: skip


def refused(message):
    return Raw("a [prompt]", 101.0, [(101.1, message)], 500, "application/json", ended_s=101.1)


def asked(**changes):
    fields = {
        "server": parse_server("http://127.0.0.1:8000", "completions"), "api": "completions",
        "model": "a-model", "prompts": [Prompt("a prompt", "Hello")], "hold_prompt": None,
        "stop": ["x" * 30], "concurrency": 4, "requests": 25, "max_tokens": 64,
        "limits": Limits(60.0, 1 << 20), "seed": 0, "compares": True, "asks_ids": False,
        "asks_logprobs": False, "vocabulary": None, "key": None,
    }  # fmt: skip
    return Asked(**(fields | changes))


def probe_record(script=None, streams=24):
    """A probe with good streams and a failure, a hold-back, a load and a text that differs."""
    script = script or Script(
        tokens=TEXT, pace_s=0.005, first_s=0.05, usage="continuous", holds=(7,), per_chunk=2,
        hold_for_stops=True,
    )  # fmt: skip
    wanted = asked()
    load = Load(lambda raw: judge(raw, None))
    for number in range(streams):
        load.add(stream(script, sent_s=100.0 + number))
    load.add(refused(b'{"error": {"message": "out of [b]memory[/b]"}}'))
    load.finish(cpu_s=0.5, wall_s=10.0)
    held, free = (
        [curve_of(judge(stream(script, stop), None).answer, 100.0)] * 3
        for stop in (wanted.stop, ())
    )
    collected = Collected(
        Dialect("completions", "a-model", 0, False, False, refused=["seed"]),
        load,
        Looks("vllm", [LoadPoint(at_s=0.0, running=1.0, tokens=5.0),
                       LoadPoint(at_s=2.0, running=4.0, tokens=505.0)]),
        hold_back(wanted.stop, "a prompt", held, free),
        [compare_texts("a prompt", "one two", "one three", "one three")],
        machine=dict(MACHINE),
    )  # fmt: skip
    return record_of(wanted, collected, "2026-01-02T03:04:05Z", ["detokbench", "probe"]).record
