"""Texts become rows of token ids: a prompt and an output for each sequence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.scenario import Scenario
from detokbench.workload.texts import load_text, paragraphs

ADMIT_ROWS = 4
# Output ids of a row: long for few rows, so that one of them gives a sample long enough to time,
# short for many, so that a batch of 256 is still made in a moment.
_OUTPUT_TOKENS = ((8, 256), (64, 128))
_OUTPUT_TOKENS_AT_LEAST = 64


class Workload(msgspec.Struct, frozen=True):
    """Token ids for every row, the same for all paths.

    ``prompts[i]`` and ``outputs[i]`` belong to row ``i``; a batch of B takes the first B rows.
    ``admit_prompts[n]`` are a few prompts of ``n`` ids, with ``admit_first_ids`` as their first
    output. Every row has different text.
    """

    prompts: list[list[int]]
    outputs: list[list[int]]
    admit_prompts: dict[int, list[list[int]]]
    admit_first_ids: list[int]

    def steps(self, batch: int, ids_per_step: int) -> list[list[list[int]]]:
        """``steps[t][i]`` are the ids that row ``i`` gets in step ``t``."""
        length = min(output_tokens(batch), *map(len, self.outputs[:batch]))
        starts = range(0, length - ids_per_step + 1, ids_per_step)
        return [[row[t : t + ids_per_step] for row in self.outputs[:batch]] for t in starts]


def output_tokens(batch: int) -> int:
    """How many output ids each row of a batch gets before it is opened anew."""
    for most_rows, tokens in _OUTPUT_TOKENS:
        if batch <= most_rows:
            return tokens
    return _OUTPUT_TOKENS_AT_LEAST


def build_workload(
    vocabulary: Vocabulary, scenario: Scenario, folder: Path, seed: int, output_len: int = 0
) -> Workload:
    """Encode the scenario's texts and deal them out: each row gets its paragraphs shuffled.

    Outputs have ``output_len`` ids at least.
    """
    encoded = [_encode(vocabulary, load_text(name, folder)) for name in scenario.texts]
    rows = max(scenario.batches)
    pairs = [
        _prompt_and_output(
            encoded[row % len(encoded)],
            scenario.prompt_len,
            max(output_len, *(output_tokens(b) for b in scenario.batches if b > row)),
            random.Random(f"{seed}:{row}"),
        )
        for row in range(rows)
    ]
    admitted = {
        length: [
            _prompt_and_output(encoded[row % len(encoded)], length, 1, random.Random(f"{row}"))
            for row in range(ADMIT_ROWS)
        ]
        for length in scenario.admit_prompt_lens
    }
    first_ids = [row[1][0] for row in next(iter(admitted.values()))]
    return Workload(
        prompts=[prompt for prompt, _ in pairs],
        outputs=[output for _, output in pairs],
        admit_prompts={n: [prompt for prompt, _ in rows] for n, rows in admitted.items()},
        admit_first_ids=first_ids,
    )


def _encode(vocabulary: Vocabulary, text: str) -> list[list[int]]:
    return [vocabulary.encode(paragraph) for paragraph in paragraphs(text)]


def _prompt_and_output(
    encoded: Sequence[list[int]], prompt_len: int, output_len: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Ids of shuffled paragraphs, cut so that the output begins where a paragraph begins.

    A prompt cut inside a character would make some paths emit U+FFFD, which is for ``verify``
    to show and not for a timing to contain.
    """
    prompt: list[int] = []
    while len(prompt) < prompt_len:
        prompt.extend(_shuffled(encoded, rng, prompt_len - len(prompt)))
    output: list[int] = []
    while len(output) < output_len:
        output.extend(_shuffled(encoded, rng, output_len - len(output)))
    return prompt[len(prompt) - prompt_len :], output[:output_len]


def _shuffled(encoded: Sequence[list[int]], rng: random.Random, enough: int) -> list[int]:
    """Whole paragraphs in random order, as few as give ``enough`` ids if all of them do."""
    order = list(encoded)
    rng.shuffle(order)
    ids: list[int] = []
    for paragraph in order:
        ids.extend(paragraph)
        if len(ids) >= enough:
            break
    return ids
