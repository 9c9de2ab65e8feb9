"""Texts become rows of token ids: a prompt and an output for each sequence."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.scenario import Scenario
from detokbench.workload.texts import load_text, sentences

ADMIT_ROWS = 4
_ADMITTED = range(ADMIT_ROWS)
# Output ids of a row: long for few rows, so that one of them gives a sample long enough to time,
# short for many, so that a batch of 256 is still made in a moment.
_OUTPUT_TOKENS = ((8, 256), (64, 128))
_OUTPUT_TOKENS_AT_LEAST = 64
# A first step that is not timed, and enough others for a line through several numbers of steps.
STEPS_AT_LEAST = 4


class Workload(msgspec.Struct, frozen=True):
    """Token ids for every row, the same for all paths.

    ``prompts[i]`` and ``outputs[i]`` belong to row ``i``; a batch of B takes the first B rows.
    ``admit_prompts[n]`` are a few prompts of ``n`` ids, with ``admit_first_ids`` as their first
    output. Every row has text of its own, as far as a text has several sentences.
    """

    prompts: list[list[int]]
    outputs: list[list[int]]
    admit_prompts: dict[int, list[list[int]]]
    admit_first_ids: list[int]

    def steps(self, batch: int, ids_per_step: int) -> list[list[list[int]]]:
        """``steps[t][i]`` are the ids that row ``i`` gets in step ``t``."""
        wanted = max(output_tokens(batch), STEPS_AT_LEAST * ids_per_step)
        length = min(wanted, *map(len, self.outputs[:batch]))
        starts = range(0, length - ids_per_step + 1, ids_per_step)
        return [[row[t : t + ids_per_step] for row in self.outputs[:batch]] for t in starts]


def output_tokens(batch: int) -> int:
    """How many output ids each row of a batch gets before it is opened anew."""
    for most_rows, tokens in _OUTPUT_TOKENS:
        if batch <= most_rows:
            return tokens
    return _OUTPUT_TOKENS_AT_LEAST


def build_workload(
    vocabulary: Vocabulary,
    scenario: Scenario,
    folder: Path,
    seed: int,
    output_len: int = 0,
) -> Workload:
    """Encode the scenario's texts and deal them out: each row gets their sentences shuffled.

    Outputs have ``output_len`` ids at least, and enough for a few steps of the scenario. Raises
    DetokbenchError (exit code 5) where the vocabulary has no ids for a text.
    """
    least = max(output_len, STEPS_AT_LEAST * scenario.ids_per_step)
    texts = [_Text(vocabulary, load_text(name, folder), seed) for name in scenario.texts]
    dealt = []
    for row in range(max(scenario.batches)):
        tokens = max(output_tokens(batch) for batch in scenario.batches if batch > row)
        text, turn = texts[row % len(texts)], row // len(texts)
        dealt.append(text.prompt_and_output(scenario.prompt_len, max(tokens, least), turn))
    admitted = {
        length: [texts[row % len(texts)].prompt_and_output(length, 1, row) for row in _ADMITTED]
        for length in scenario.admit_prompt_lens
    }
    first_ids = [output[0] for _, output in next(iter(admitted.values()))]
    return Workload(
        prompts=[prompt for prompt, _ in dealt],
        outputs=[output for _, output in dealt],
        admit_prompts={n: [prompt for prompt, _ in rows] for n, rows in admitted.items()},
        admit_first_ids=first_ids,
    )


class _Text:
    """One text, its sentences encoded each by itself, dealt out in turns."""

    def __init__(self, vocabulary: Vocabulary, text: str, seed: int) -> None:
        self._seed = seed
        encoded = [vocabulary.encode(sentence) for sentence in sentences(text)]
        self._sentences = [ids for ids in encoded if ids]
        if not self._sentences:
            raise DetokbenchError(f"{vocabulary.name} has no ids for the text {text[:30]!r}")
        # The rows of a text begin with different sentences until all have had their turn.
        self._first = list(range(len(self._sentences)))
        random.Random(seed).shuffle(self._first)

    def prompt_and_output(
        self, prompt_len: int, output_len: int, turn: int
    ) -> tuple[list[int], list[int]]:
        """Ids of shuffled sentences, cut so that the output begins where a sentence begins.

        A prompt cut inside a character would make some paths emit U+FFFD, which is for ``verify``
        to show and not for a timing to contain.
        """
        rng = random.Random(f"{self._seed}:{turn}")
        prompt = self._ids(prompt_len, rng)
        output = list(self._sentences[self._first[turn % len(self._first)]])
        output.extend(self._ids(output_len - len(output), rng))
        return prompt[len(prompt) - prompt_len :], output[:output_len]

    def _ids(self, enough: int, rng: random.Random) -> list[int]:
        """Whole sentences in random order until there are ``enough`` ids, all of them in turn."""
        ids: list[int] = []
        while len(ids) < enough:
            for sentence in rng.sample(self._sentences, k=len(self._sentences)):
                ids.extend(sentence)
                if len(ids) >= enough:
                    break
        return ids
