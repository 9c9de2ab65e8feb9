"""A made-up ``frontend-parts`` record, whose numbers can be followed by hand."""

from types import SimpleNamespace

import msgspec
from frontend_records import MACHINE

from detokbench.live.engines import parts_record as under_test
from detokbench.live.engines.vllm_parts import RUNGS
from detokbench.records.frontend_parts import PartsAt, PartsDetails, PartSeen, ProfilePart
from detokbench.workload.scenario import load_scenario

US = 1e-6
COSTS = dict(zip(RUNGS, (1.0, 3.0, 2.0, 1.5, 1.0, 1.0, 4.0, 2.0, 6.0), strict=True))
"""µs a token; 20 in all but for ``stop``."""
PROFILE = {"socket": 0.3, "json": 0.25, "output": 0.2, "requests": 0.15, "loop": 0.08,
           "other": 0.02}  # fmt: skip


VOCABULARY = SimpleNamespace(
    name="llama-3",
    facts={"name": "llama-3", "ids": 128_256, "tokenizer": "Rust", "source": "folder"},
)


def parts_at(streams=128, whole_us=25.0, long_us=22.0, rounds=3):
    """Round n is n µs dearer in the dearest part, and in the whole."""
    parts = [
        PartSeen(
            name=name,
            rounds_s=[(cost + n * (name == "socket")) * US for n in range(rounds)],
            in_sum=name != "stop",
        )
        for name, cost in COSTS.items()
    ]
    return PartsAt(
        streams=streams,
        parts=parts,
        whole_rounds_s=[(whole_us + n) * US for n in range(rounds)],
        long_rounds_s=[(long_us + n) * US for n in range(rounds)],
    )


def parts_details(**changes):
    fields = {
        "engine": "vllm", "version": "0.33.0", "loop": "uvloop", "parser": "h11",
        "t_step_s": 0.01, "window_s": 2.0, "max_tokens": 256, "long_tokens": 1024,
        "at": [parts_at(32, whole_us=40.0, long_us=40.0), parts_at()],
        "profile": [
            ProfilePart(name=name, share=share, frames=[(f"{name} (file.py)", share / 2)])
            for name, share in PROFILE.items()
        ],
        "profile_samples": 2000, "chunks_per_token": 1.0,
    }  # fmt: skip
    return PartsDetails(**{**fields, **changes})


def parts_record(**changes):
    scenario, _ = load_scenario("llama3-chat")
    record = under_test.parts_record(
        parts_details(**changes), scenario, VOCABULARY, dict(MACHINE), "2026-12-01T00:00:00Z",
        ["vllm_parts.py"],
    )  # fmt: skip
    return msgspec.structs.replace(record, packages={"vllm": "0.33.0"}, warnings=[])
