"""The streams that both of a pair are put through: cases, texts, orders of kinds, random ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from detokbench.verify.case_results import step_sizes_of, stream_of
from detokbench.verify.corpus import beginnings, cut_texts, orders_of_kinds, text_ids
from detokbench.verify.corpus import texts_with_stops as with_stops
from detokbench.verify.fuzz import Fuzz
from detokbench.verify.stream import Stream
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case

Sizes = Sequence[int | None]
"""Numbers of ids a step; None for all in one."""


def streams_for(
    vocabulary: Vocabulary, cases: Sequence[Case], fuzz: int, seed: int
) -> Iterator[tuple[Stream, Sizes]]:
    """Every stream of a run on one vocabulary, with the numbers of ids a step to take it in."""
    for case in cases:
        for row in case.rows(vocabulary.encode):
            yield stream_of(row, f"case {case.name}"), step_sizes_of(case)
    texts = text_ids(vocabulary)
    yield from ((stream, (1, 3)) for stream in beginnings(texts))
    yield from ((stream, (1,)) for stream in cut_texts(texts))
    yield from ((stream, (1, 3, None)) for stream in with_stops(texts, vocabulary))
    kinds = orders_of_kinds(vocabulary.id_bytes, vocabulary, seed)
    yield from ((stream, (1, 2, None)) for stream in kinds)
    random = Fuzz(vocabulary, seed)
    for number in range(fuzz):
        yield random.stream(number), (1, random.ids_per_step(number))
