"""A made-up ``fidelity`` record, whose numbers can be followed by hand."""

import msgspec
from frontend_records import MACHINE

from detokbench.records.fidelity import EngineFacts, FidelityDetails, PairCost, PairTexts
from detokbench.records.schema import Record


def fidelity_record():
    """One pair, all texts alike, ours at 0.9 of theirs."""
    texts = PairTexts(ours="fast", theirs="vllm", vocab="llama-3", streams=10, runs=40, steps=400)
    cost = PairCost(
        ours="fast", theirs="vllm", vocab="llama-3", batch=32, ours_s=0.9e-6, theirs_s=1e-6,
        ratio=0.9, ci_low=0.85, ci_high=0.95, ratios=[0.85, 0.9, 0.95],
    )  # fmt: skip
    details = FidelityDetails(
        engines=[EngineFacts(name="vllm", version="0.33.0", tried=["0.33.0"])],
        tolerance=(0.8, 1.25), texts=[texts], costs=[cost], known=[], fuzz=100, seed=0,
    )  # fmt: skip
    return Record(
        kind="fidelity",
        created="2026-01-02T03:04:05Z",
        command=["detokbench", "fidelity"],
        detokbench="0.1",
        scenario={"name": "llama3-chat", "title": "Chat"},
        vocabulary={"name": "llama-3", "ids": 128_256, "tokenizer": "Rust", "source": "x"},
        settings={"processes_finished": 3, "seed": 0, "pinned": True, "gc": False},
        machine=MACHINE,
        packages={"tokenizers": "0.23.3", "transformers": "5.24.0"},
        details=msgspec.to_builtins(details),
    )
