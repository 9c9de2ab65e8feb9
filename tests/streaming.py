"""Driving paths and vocabularies from tests."""

from collections.abc import Sequence
from functools import cache

import pytest

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.paths import DetokPath, Flags, load_path_class
from detokbench.vocab import Vocabulary, load_vocabulary
from detokbench.workload.texts import load_text, script_names

VOCABULARIES = ("llama-3", "tekken", "tekken-fast", "mistral-spm", "mistral-spm-fast")


@cache
def vocabulary(name: str) -> Vocabulary:
    """Loaded once for all tests."""
    return load_vocabulary(name)


def build(path: str, on: Vocabulary, **options: int) -> DetokPath:
    """A path by name on a vocabulary."""
    return load_path_class(path)(on, **options)


@cache
def script_ids(vocabulary_name: str) -> dict[str, list[int]]:
    """Ids of every shipped script text."""
    vocab = vocabulary(vocabulary_name)
    return {name: vocab.encode(load_text(name)) for name in script_names()}


def stream(
    path: DetokPath,
    sequences: Sequence[list],
    ids_per_step: int = 1,
    prompts: Sequence[list[int]] | None = None,
    flags: Sequence[Flags] | None = None,
) -> list[str]:
    """The text of each sequence, streamed as one batch whose rows end when their ids do."""
    rows = path.open(prompts or [[] for _ in sequences], flags)
    texts = ["" for _ in sequences]
    for start in range(0, max(map(len, sequences)), ids_per_step):
        live = [i for i, ids in enumerate(sequences) if start < len(ids)]
        new_ids = [sequences[i][start : start + ids_per_step] for i in live]
        for i, delta in zip(live, path.step([rows[i] for i in live], new_ids), strict=True):
            texts[i] += delta
    return [text + path.end(row) for text, row in zip(texts, rows, strict=True)]


def deltas(
    path: DetokPath,
    steps: Sequence[list],
    prompt: Sequence[int] = (),
    flags: Flags | None = None,
) -> list[str]:
    """What one row sends at each step, and what its end gives as the last item."""
    (row,) = path.open([list(prompt)], [flags or Flags()])
    sent = [path.step([row], [ids])[0] for ids in steps]
    return [*sent, path.end(row)]


def one_by_one(ids: Sequence) -> list[list]:
    """The steps that give one id each."""
    return [[token_id] for token_id in ids]


def assert_error(caught: pytest.ExceptionInfo[DetokbenchError], code: ExitCode, *says: str) -> None:
    """The error is one line with this exit code, and says these things."""
    message = str(caught.value)
    assert caught.value.exit_code == code, message
    assert "\n" not in message
    for part in says:
        assert part in message
