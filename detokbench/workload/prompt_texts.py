"""Prompts as text, of about a given number of ids: sentences of the scenario's texts, shuffled."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.scenario import Scenario
from detokbench.workload.texts import load_text, sentences

_MOST_IDS = 1 << 15  # of all texts of one length together, as far as ``_FEWEST`` allows
_FEWEST, _MOST = 3, 64


class PromptText(msgspec.Struct, frozen=True):
    """A text, and how many ids it encodes to without special tokens."""

    text: str
    ids: int


def texts_wanted(length: int) -> int:
    """How many different texts there are of a length: fewer of the long ones."""
    return max(_FEWEST, min(_MOST, _MOST_IDS // length))


def prompt_texts(
    vocabulary: Vocabulary, scenario: Scenario, folder: Path, lengths: Sequence[int], seed: int
) -> dict[int, list[PromptText]]:
    """Different texts of each length, in ids.

    Each is cut between two characters, so that it encodes to about the number of ids, and says how
    many they are.
    """
    parts = [
        [(part, len(vocabulary.encode(part))) for part in sentences(load_text(name, folder))]
        for name in scenario.texts
    ]
    texts: dict[int, list[PromptText]] = {}
    for length in lengths:
        texts[length] = [
            _prompt(vocabulary, parts[turn % len(parts)], length, random.Random(f"{seed}:{turn}"))
            for turn in range(texts_wanted(length))
        ]
    return texts


def _prompt(
    vocabulary: Vocabulary, parts: Sequence[tuple[str, int]], length: int, rng: random.Random
) -> PromptText:
    chosen: list[str] = []
    ids: list[int] = []
    expected = 0
    while len(ids) < length:  # joined, sentences may have fewer ids than one by one
        for part, part_ids in rng.sample(parts, k=len(parts)):
            chosen.append(part)
            expected += max(part_ids, 1)
            if expected > length:
                break
        if expected > length:
            ids = vocabulary.encode("".join(chosen))
            expected = len(ids)
    text = vocabulary.decode(ids[:length]).rstrip("\ufffd")
    return PromptText(text, len(vocabulary.encode(text)))


def write_prompt_texts(texts: dict[int, list[PromptText]], workload_file: str) -> None:
    """Keep the texts beside the workload, for the workers."""
    _file_beside(workload_file).write_bytes(msgspec.msgpack.encode(texts))


def read_prompt_texts(workload_file: str) -> dict[int, list[PromptText]]:
    """What ``write_prompt_texts`` kept."""
    content = _file_beside(workload_file).read_bytes()
    return msgspec.msgpack.decode(content, type=dict[int, list[PromptText]])


def _file_beside(workload_file: str) -> Path:
    return Path(workload_file).with_suffix(".texts")
