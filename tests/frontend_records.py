"""Made-up ``frontend`` records, whose numbers can be followed by hand."""

import msgspec

from detokbench.live.engines.front_end_judge import RULE, why_not
from detokbench.live.engines.frontend_rows import frontend_rows
from detokbench.records.frontend import (
    PLAIN,
    FrontendAnswer,
    FrontendDetails,
    FrontendEngine,
    FrontendLimit,
    FrontendRun,
    GpuCurve,
    OpenEndSeen,
    RoleCpu,
)
from detokbench.records.pipeline import Quantiles
from detokbench.records.schema import Record

MACHINE = {
    "cpu": "Some CPU", "architecture": "x86_64", "cpus_usable": 8, "cpus_total": 8,
    "memory_bytes": 1 << 34, "system": "Linux 6", "python": "CPython 3.11.7",
    "free_threaded": False, "load_1min": 0.1, "busy_percent": 1.0, "governor": None,
    "steal_percent": 0.0, "virtual": True,
}  # fmt: skip


def spread(middle_s):
    return Quantiles(
        count=1000, mean=middle_s, p50=middle_s, p90=2 * middle_s, p99=3 * middle_s,
        longest=4 * middle_s,
    )  # fmt: skip


def run(engine, streams, t_step_ms, roles, *, chunks=1.0, stretch=1.0, **changes):
    """``roles``: µs of CPU a token by role."""
    broken = why_not(stretch, chunks)
    t_step_s = t_step_ms * 1e-3
    fields = {
        "engine": engine, "of": "grid", "variant": PLAIN, "streams": streams,
        "t_step_s": t_step_s, "window_s": 4.0, "steps": round(4 / t_step_s), "late_steps": 0,
        "worst_late_s": 0.0, "steps_share": 1.0, "ids": round(4 * streams / t_step_s),
        "requests": 50,
        "roles": [
            RoleCpu(role=role, s_per_token=us * 1e-6, share=us * 1e-6 * streams / t_step_s)
            for role, us in roles.items()
        ],
        "chunks_per_token": chunks, "events_per_token": chunks, "events_per_read": 1.0,
        "stretch": stretch, "stretch_streams": streams, "itl": spread(t_step_s),
        "lag": spread(1e-3), "ttft": spread(5e-3), "holds": not broken, "why_not": broken,
        "bound_by": "", "kept_share": 1.0, "checked": 50, "wrong": 0, "first_difference": "",
    }  # fmt: skip
    return FrontendRun(**{**fields, **changes})


PYTHON = {"http": 27.0, "supervisor": 0.01, "engine": 2.0, "client": 5.0}
RUST = {"rust": 9.0, "engine": 2.0, "client": 5.0}
CHAT = {**PYTHON, "http": 40.0}


def frontend_details(**changes):
    """``vllm`` merges beyond 25,600 tokens/s at 128 streams; ``sglang-rs`` is client-bound."""
    runs = [
        run("vllm", 1, 5, {**PYTHON, "http": 220.0}),
        run("vllm", 128, 5, PYTHON),
        run("vllm", 128, 4, PYTHON, chunks=0.8, of="search"),
        run("vllm", 128, 5, CHAT, variant="chat", of="variant"),
        run("sglang-rs", 1, 5, {**RUST, "rust": 77.0}),
        run("sglang-rs", 128, 5, RUST),
        run("sglang-rs", 128, 2, RUST, of="search", events_per_read=2.5),
        run("sglang-rs", 128, 1.5, RUST, stretch=1.2, of="search", bound_by="client"),
    ]
    limits = [
        ("vllm", 1, 0.4e-3, 0.35e-3, False, "chunks merge: 0.90 a token"),
        ("vllm", 128, 5e-3, 4e-3, False, "chunks merge: 0.80 a token"),
        ("sglang-rs", 1, 0.25e-3, None, True, ""),
        ("sglang-rs", 128, 2e-3, 1.5e-3, True, "streams take 1.20 of their time"),
    ]
    names = ("engine", "streams", "held_s", "broke_s", "is_bound", "why")
    engines = [
        FrontendEngine(name="vllm", summary="in Python", version="0.33.0", ready_s=15.0),
        FrontendEngine(
            name="sglang-rs", summary="in Rust", version="0.5.23", ready_s=20.0,
            left_out=["logprobs 1: the server answered 400"],
        ),
    ]  # fmt: skip
    needed = {64: 1, 128: 1, 256: 3}
    answers = [
        FrontendAnswer(
            engine="vllm", context=128, answer="121", batch=121.0, is_bound=False, needed=needed
        ),
        FrontendAnswer(
            engine="sglang-rs", context=128, answer="never", batch=None, is_bound=False,
            needed=dict.fromkeys(needed, 1),
        ),
    ]  # fmt: skip
    fields = {
        "engines": engines, "front_ends": 1, "streams": [1, 128], "t_steps_s": [5e-3],
        "max_tokens": 256, "prompt_len": 16, "is_ascii": True, "stop": [], "rule": RULE,
        "gpu": "Some GPU", "shape": "llama-3-8b",
        "curves": [
            GpuCurve(context=128, batches=[1, 128, 512], seconds=[4.5e-3, 5e-3, 8e-3],
                     largest_batch=512)
        ],
        "runs": runs,
        "limits": [FrontendLimit(**dict(zip(names, limit, strict=True))) for limit in limits],
        "answers": answers,
        "open_ends": [
            OpenEndSeen(engine="vllm", whole="So: ", behind="", finish="length"),
            OpenEndSeen(engine="sglang-rs", whole="So: ", behind="\ufffd", finish="length"),
        ],
    }  # fmt: skip
    return FrontendDetails(**{**fields, **changes})


def frontend_record(**changes):
    """A record of these details; ``changes`` are of the details."""
    details = frontend_details(**changes)
    return Record(
        kind="frontend",
        created="2026-01-02T03:04:05Z",
        command=["detokbench", "frontend"],
        detokbench="0.1",
        scenario={"name": "llama3-chat", "title": "Chat"},
        vocabulary={
            "name": "some-model",
            "ids": 128_256,
            "tokenizer": "Rust",
            "source": "folder",
        },  # fmt: skip,
        settings={"processes_finished": 2, "window_s": 4.0, "seed": 0, "pinned": False},
        machine=MACHINE,
        packages={"tokenizers": "0.23.3", "transformers": "5.24.0"},
        rows=frontend_rows(details, "some-model"),
        details=msgspec.to_builtins(details, str_keys=True),
    )
