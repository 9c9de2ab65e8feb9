"""Command lines that show a difference again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from detokbench.records.verify import StreamFacts


def trace_command(facts: StreamFacts, path: str) -> str:
    """The ``detokbench trace`` that streams this input through a path; empty where none can."""
    if not path or not all(type(token_id) is int for token_id in facts.output):
        return ""
    words = ["detokbench", "trace", path, "--vocab", facts.vocab]
    if facts.prompt:
        words += ["--prompt-ids", id_list(facts.prompt)]
    words += ["--output-ids", id_list(facts.output)]
    if facts.ids_per_step != 1:
        words += ["--ids-per-step", str(facts.ids_per_step or len(facts.output))]
    for stop in facts.stop:
        words += ["--stop", stop]
    for stop_id in facts.stop_ids:
        words += ["--stop-id", str(stop_id)]
    if facts.min_tokens:
        words += ["--min-tokens", str(facts.min_tokens)]
    words += ["--keep-stop"] * facts.keep_stop
    words += ["--keep-special"] * (not facts.skip_special_tokens)
    words += ["--no-spaces-between"] * (not facts.spaces_between_special_tokens)
    words += ["--no-end"] * (not facts.ended)
    return " ".join(map(shlex.quote, words))


def id_list(ids: Sequence[Any]) -> str:
    """Ids with commas, runs as ``id*count``."""
    runs = [(token_id, len(list(run))) for token_id, run in groupby(ids)]
    return ",".join(f"{i}*{n}" if n > 2 else ",".join([str(i)] * n) for i, n in runs)
