"""Random streams: each is made from a seed and its own number, whatever ran before it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from detokbench.paths.protocol import Flags
from detokbench.stops.request import StopRequest
from detokbench.verify.kinds import kind_of
from detokbench.verify.stream import NO_STOPS, Stream
from detokbench.vocab.id_bytes import IdBytes
from detokbench.vocab.reference import reference_text
from detokbench.vocab.vocabulary import Vocabulary

_STRANGE: tuple[Any, ...] = (-1, -12345, 1 << 32, 1 << 63, 1.0, "1", True, None)
_LONGEST = 24
_LONGEST_PROMPT = 12
_LONGEST_RUN = 6
# Letters, spaces, and characters of two, three and four bytes, some of which join to others.
_CHARACTERS = "ab .\n\u00e9\u1019\u1014\u102c\u6b6a\u9f98\u0e01\u200d\ufe0f\ufffd" + (
    "\U00020bb7\U0001f917\U0001f336"
)


class Fuzz:
    """Random streams over one vocabulary."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        """``seed`` and the vocabulary's name decide every stream."""
        self._vocabulary = vocabulary
        self._table: IdBytes = vocabulary.id_bytes
        self._seed = seed
        by_kind: dict[str, list[int]] = {}
        for token_id in range(len(self._table.pieces)):
            by_kind.setdefault(kind_of(self._table, token_id), []).append(token_id)
        # Each kind is as likely as any other: rare ones are where things go wrong.
        self._pools = [by_kind[kind] for kind in sorted(by_kind)]

    def streams(self, numbers: range) -> Iterator[Stream]:
        """The streams of these numbers."""
        for number in numbers:
            yield self.stream(number)

    def stream(self, number: int) -> Stream:
        """Random runs of kinds after a random prompt, with random flags and, at times, stops."""
        random = Random(f"{self._vocabulary.name} {self._seed} {number}")
        flags = Flags(random.random() < 0.8, random.random() < 0.5)
        prompt = self._ids(random, random.randrange(_LONGEST_PROMPT + 1), strange=False)
        output = self._ids(random, random.randint(1, _LONGEST), strange=random.random() < 0.2)
        stops = NO_STOPS
        if random.random() < 0.3:
            text = reference_text(self._table, prompt, output, flags.skip_special_tokens)
            stops = self._stops(random, text, output)
        ended = random.random() < 0.9
        return Stream(tuple(prompt), tuple(output), flags, stops, ended, origin=f"fuzz {number}")

    def ids_per_step(self, number: int) -> int | None:
        """The number of ids a step for a stream's second run."""
        random = Random(f"steps {self._seed} {number}")
        return random.choice((2, 3, 4, 7, None))

    def _ids(self, random: Random, length: int, *, strange: bool) -> list[Any]:
        ids: list[Any] = []
        while len(ids) < length:
            if random.random() < 0.04:
                ids.append(len(self._table.pieces) + random.randrange(1 << 16))
            elif strange and random.random() < 0.1:
                ids.append(random.choice(_STRANGE))
            elif random.random() < 0.3:
                ids.extend(self._text_run(random))
            else:
                pool = random.choice(self._pools)
                run = random.randint(1, _LONGEST_RUN) if random.random() < 0.2 else 1
                ids.extend(random.choice(pool) for _ in range(run))
        return ids[:length]

    def _text_run(self, random: Random) -> list[int]:
        """A few characters as the vocabulary spells them, split or not."""
        text = "".join(random.choice(_CHARACTERS) for _ in range(random.randint(1, 4)))
        return self._vocabulary.encode(text)

    def _stops(self, random: Random, text: str, output: list[Any]) -> StopRequest:
        if random.random() < 0.2:
            ids = [i for i in output if type(i) is int and i >= 0]
            return StopRequest(stop_ids=frozenset(random.sample(ids, min(1, len(ids)))))
        strings = tuple(
            dict.fromkeys(self._stop_string(random, text) for _ in range(random.randint(1, 3)))
        )
        min_tokens = random.randrange(8) if random.random() < 0.3 else 0
        return StopRequest(strings, min_tokens=min_tokens, keep_stop=random.random() < 0.3)

    def _stop_string(self, random: Random, text: str) -> str:
        """A piece of the text, changed at its end half of the time."""
        if not text:
            return "stop"
        begin = random.randrange(len(text))
        piece = text[begin : begin + random.randint(1, 8)]
        return piece + random.choice(_CHARACTERS) if random.random() < 0.5 else piece
