"""What the engine emits and the clients ask for: rows of ids, and one that ends in a character.

Request n gets row ``n % rows``, as front ends and engines agreed (``Launch.workload_file``). The
last row is the one whose ids end inside a character; only its own request asks for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.live.engines.known_texts import KnownText, known_texts
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.scenario import Scenario, override
from detokbench.workload.streams import build_workload

ROWS = 64
_OPEN_TEXTS = ("So it ends: 🧑🏽‍🚀", "So it ends: 𒀱𒁃", "So it ends: 龘𪚥")


class OpenEnd(NamedTuple):
    """Ids that end inside a character: the text before it, and how many bytes of it they hold."""

    ids: list[int]
    whole: str
    bytes_left: int


class FrontendWorkload(NamedTuple):
    """``outputs`` holds the rows of the runs, and last that of the open end, if there is one."""

    prompts: list[list[int]]
    outputs: list[list[int]]
    texts: list[KnownText]
    open_end: OpenEnd | None

    @property
    def rows(self) -> int:
        """Rows that the runs' requests take."""
        return len(self.texts)

    def number(self, request: int) -> int:
        """The number (seed) of the request-th request of the runs."""
        return request // self.rows * len(self.outputs) + request % self.rows

    def text_of(self, number: int) -> KnownText:
        """What the request with this number gets."""
        return self.texts[number % len(self.outputs)]

    def write(self, path: Path, eos: int) -> None:
        """The file that engines read."""
        path.write_bytes(msgspec.msgpack.encode({"outputs": self.outputs, "eos": eos}))


def frontend_workload(
    vocabulary: Vocabulary,
    scenario: Scenario,
    folder: Path,
    seed: int,
    prompt_len: int,
    output_len: int,
) -> FrontendWorkload:
    """Rows of ``output_len`` ids of the scenario's texts, each with a prompt."""
    asked = override(scenario, batches=[ROWS], prompt_len=prompt_len, ids_per_step=1)
    made = build_workload(vocabulary, asked, folder, seed, output_len=output_len)
    outputs = [row[:output_len] for row in made.outputs]
    if min(map(len, outputs)) < output_len:
        raise DetokbenchError(f"the texts do not give {output_len} ids a row")
    texts = known_texts(vocabulary, made.prompts, outputs)
    open_end = open_end_of(vocabulary)
    return FrontendWorkload(
        made.prompts, outputs + ([open_end.ids] if open_end else []), texts, open_end
    )


def open_end_of(vocabulary: Vocabulary) -> OpenEnd | None:
    """Ids that end inside a character; None where no tried character is split over ids."""
    for text in _OPEN_TEXTS:
        ids = vocabulary.encode(text)
        for count in range(len(ids) - 1, 0, -1):
            decoded = vocabulary.raw_decode(ids[:count])
            whole = decoded.rstrip("\ufffd")
            if decoded != whole and text.startswith(whole):
                return OpenEnd(ids[:count], whole, len(decoded) - len(whole))
    return None


def eos_of(vocabulary: Vocabulary) -> int:
    """The id that ends a text, where the tokenizer names one; else the last special one, or 0."""
    eos = getattr(vocabulary.tokenizer, "eos_token_id", None)
    if isinstance(eos, int):
        return eos
    special = vocabulary.tokenizer.all_special_ids
    return special[-1] if special else 0
