"""The streams that every path is put through by default: texts, and orders of kinds of ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from detokbench.stops.request import StopRequest
from detokbench.verify.kinds import Kind, representatives
from detokbench.verify.stream import Stream
from detokbench.vocab.id_bytes import IdBytes
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.texts import load_text, text_names

_BEGINNING = 200
_CUTS = 10
_AFTER_A_CUT = 30
_EXHAUSTIVE = 2
_LONGER = 3
_LONGER_ORDERS = 150
_STOP_CHARACTERS = 12


def text_ids(vocabulary: Vocabulary) -> dict[str, list[int]]:
    """Ids of every shipped text that the vocabulary can express."""
    ids = {name: vocabulary.encode(load_text(name)) for name in text_names()}
    return {name: found for name, found in ids.items() if vocabulary.decode(found).strip()}


def whole_texts(texts: dict[str, list[int]]) -> Iterator[Stream]:
    """Each text as one stream without a prompt."""
    for name, ids in texts.items():
        yield Stream((), tuple(ids), origin=f"text {name}")


def beginnings(texts: dict[str, list[int]]) -> Iterator[Stream]:
    """The beginning of each text: long enough for any number of ids a step to matter."""
    for name, ids in texts.items():
        yield Stream((), tuple(ids[:_BEGINNING]), origin=f"text {name}, its beginning")


def cut_texts(texts: dict[str, list[int]]) -> Iterator[Stream]:
    """Each text cut at ten places into a prompt and what follows it, inside characters too."""
    for name, ids in texts.items():
        step = max(1, len(ids) // (_CUTS + 1))
        for cut in range(1, len(ids), step):
            output = ids[cut : cut + _AFTER_A_CUT]
            yield Stream(tuple(ids[:cut]), tuple(output), origin=f"text {name}, cut at {cut}")


def texts_with_stops(texts: dict[str, list[int]], vocabulary: Vocabulary) -> Iterator[Stream]:
    """The beginning of each text, with stops that lie in it: inside tokens, and over several."""
    for name, all_ids in texts.items():
        ids = all_ids[: 4 * _AFTER_A_CUT]
        text = vocabulary.decode(ids)
        middle = len(text) // 2
        stop = text[middle : middle + _STOP_CHARACTERS]
        for strings in ((stop,), (stop[1:], stop[:3]), (stop + "#", text[middle + 3])):
            if not all(strings) or any("\ufffd" in string for string in strings):
                continue
            stops = StopRequest(strings=strings)
            yield Stream((), tuple(ids), stops=stops, origin=f"text {name}, with stops")


def orders_of_kinds(table: IdBytes, vocabulary: Vocabulary, seed: int) -> Iterator[Stream]:
    """Every order of up to two kinds of ids, and some of three: in text, at its end, over a cut.

    A kind stands for all ids like it, so that few streams reach what random ids would not.
    """
    kinds = representatives(table, vocabulary.encode)
    pool = [token_id for ids in kinds.values() for token_id in ids]
    word = kinds.get(Kind.WORD) or vocabulary.encode("word")  # some spell letter by letter
    orders = [order for n in range(1, _EXHAUSTIVE + 1) for order in product(pool, repeat=n)]
    random = Random(f"orders {seed}")
    orders += [tuple(random.choices(pool, k=_LONGER)) for _ in range(_LONGER_ORDERS)]
    for order in orders:
        yield from _around(order, word)


def _around(order: Sequence[int], word: Sequence[int]) -> Iterator[Stream]:
    origin = "kinds of ids"
    yield Stream((), (*order, *word), origin=origin)
    yield Stream((), (*word, *order), origin=origin)
    for cut in range(1, len(order) + 1):
        prompt = (*word, *order[:cut])
        if all(isinstance(i, int) and i >= 0 for i in prompt):
            yield Stream(prompt, (*order[cut:], *word), origin=origin)
