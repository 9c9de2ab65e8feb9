"""Whether a row's text depends on other rows: their presence, their order, their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from detokbench.paths.protocol import Flags, PathClass
from detokbench.verify.kinds import Kind, representatives
from detokbench.verify.stream import Stream, one_line, run_rows
from detokbench.vocab.vocabulary import Vocabulary

MANY_ROWS = (1 << 16) + 64
"""More rows than SGLang's detokenizer keeps states for by default."""
_A_STEP = 4096
_LOOKED_AT = 8
_IDS = 60


@dataclass(frozen=True, slots=True)
class RowBreach:
    """A row that came out otherwise beside other rows than alone."""

    stream: Stream
    rows: int
    expected: str
    got: str
    error: str = ""


def mixed_rows(vocabulary: Vocabulary, texts: dict[str, list[int]]) -> list[Stream]:
    """Rows of different scripts, lengths, prompts and flags, as a batch mixes them."""
    special = sorted(vocabulary.id_bytes.special_ids)[:2]
    rows = []
    for number, (name, ids) in enumerate(texts.items()):
        output = (*ids[10 : _IDS - 2 * number], *special, *ids[:3])
        flags = Flags(number % 3 != 0, number % 2 == 0)
        prompt = tuple(ids[:10]) if number % 4 else ()
        rows.append(Stream(prompt, output, flags, origin=f"text {name}"))
    return rows


def check_neighbours(
    path_class: PathClass, vocabulary: Vocabulary, streams: Sequence[Stream]
) -> Iterator[RowBreach]:
    """Each row alone, then all together, in order, in reverse, and rotated."""
    count = len(streams)
    orders = (range(count), range(count - 1, -1, -1), [(i + 3) % count for i in range(count)])
    try:
        alone = [run_rows(path_class(vocabulary), [stream], 1, [0])[0] for stream in streams]
        for ids_per_step, order in zip((1, 1, 3), orders, strict=True):
            if ids_per_step != 1:
                alone = [
                    run_rows(path_class(vocabulary), [stream], ids_per_step, [0])[0]
                    for stream in streams
                ]
            together = run_rows(path_class(vocabulary), streams, ids_per_step, list(order))
            for stream, expected, got in zip(streams, alone, together, strict=True):
                if got != expected:
                    yield RowBreach(stream, count, expected, got)
    except Exception as error:
        yield RowBreach(streams[0], count, "", "", one_line(error))


def check_number(path_class: PathClass, vocabulary: Vocabulary) -> RowBreach | None:
    """Whether the first rows keep their text while far more rows are open than usual."""
    kinds = representatives(vocabulary.id_bytes, vocabulary.encode)
    word = kinds[Kind.SPACED][0]
    stream = Stream((word,), (word, word, word), origin="many rows")
    try:
        (expected,) = run_rows(path_class(vocabulary), [stream], 1, [0])
        got = _among_many(path_class, vocabulary, stream)
    except Exception as error:
        return RowBreach(stream, MANY_ROWS, "", "", one_line(error))
    wrong = next((text for text in got if text != expected), None)
    return None if wrong is None else RowBreach(stream, MANY_ROWS, expected, wrong)


def _among_many(path_class: PathClass, vocabulary: Vocabulary, stream: Stream) -> list[str]:
    """All rows get an id, the first and last of them the rest."""
    path = path_class(vocabulary)
    rows: list[int] = []
    first: list[str] = []
    for _ in range(0, MANY_ROWS, _A_STEP):
        opened = path.open([list(stream.prompt)] * _A_STEP, [stream.flags] * _A_STEP)
        rows += opened
        first += path.step(opened, [[stream.output[0]]] * _A_STEP)
    looked_at = [*range(_LOOKED_AT), *range(len(rows) - _LOOKED_AT, len(rows))]
    texts = [first[i] for i in looked_at]
    chosen = [rows[i] for i in looked_at]
    for token_id in stream.output[1:]:
        deltas = path.step(chosen, [[token_id]] * len(chosen))
        texts = [text + delta for text, delta in zip(texts, deltas, strict=True)]
    return [text + path.end(row) for text, row in zip(texts, chosen, strict=True)]
