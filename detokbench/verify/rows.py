"""Whether a row's text depends on other rows: their presence, their order, their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class RowsJudged:
    """How many rows beside others were compared with the same alone, and those that differed."""

    judged: int = 0
    breaches: list[RowBreach] = field(default_factory=list)


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
) -> RowsJudged:
    """Each row alone, then all together, in order, in reverse, and rotated.

    Rows that raise alone are left out: that is no matter of their neighbours.
    """
    result = RowsJudged()
    for ids_per_step, turn in ((1, _in_order), (1, _in_reverse), (3, _rotated)):
        alone = [text_alone(path_class, vocabulary, stream, ids_per_step) for stream in streams]
        rows = [
            (stream, text) for stream, text in zip(streams, alone, strict=True) if text is not None
        ]
        result.judged += len(rows)
        if rows:
            result.breaches += _check_together(
                path_class, vocabulary, rows, ids_per_step, turn(len(rows))
            )
    return result


def _in_order(count: int) -> list[int]:
    return list(range(count))


def _in_reverse(count: int) -> list[int]:
    return list(range(count - 1, -1, -1))


def _rotated(count: int) -> list[int]:
    return [(i + 3) % count for i in range(count)]


def text_alone(
    path_class: PathClass, vocabulary: Vocabulary, stream: Stream, ids_per_step: int = 1
) -> str | None:
    """What a stream gives on a path that serves no other; None where it raises."""
    try:
        return run_rows(path_class(vocabulary), [stream], ids_per_step, [0])[0]
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def _check_together(
    path_class: PathClass,
    vocabulary: Vocabulary,
    rows: Sequence[tuple[Stream, str]],
    ids_per_step: int,
    order: Sequence[int],
) -> Iterator[RowBreach]:
    streams = [stream for stream, _ in rows]
    try:
        together = run_rows(path_class(vocabulary), streams, ids_per_step, order)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        stream, expected = rows[0]
        yield RowBreach(stream, len(rows), expected, "", one_line(error))
        return
    for (stream, expected), got in zip(rows, together, strict=True):
        if got != expected:
            yield RowBreach(stream, len(rows), expected, got)


def check_number(path_class: PathClass, vocabulary: Vocabulary) -> RowsJudged:
    """Whether the first rows keep their text while far more rows are open than usual.

    Judges nothing of a path that raises with a single row.
    """
    kinds = representatives(vocabulary.id_bytes, vocabulary.encode)
    word = next(kinds[kind][0] for kind in (Kind.SPACED, *Kind) if kind in kinds)
    stream = Stream((word,), (word, word, word), origin="many rows")
    expected = text_alone(path_class, vocabulary, stream)
    if expected is None:
        return RowsJudged()
    try:
        got = _among_many(path_class, vocabulary, stream)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return RowsJudged(1, [RowBreach(stream, MANY_ROWS, expected, "", one_line(error))])
    wrong = next((text for text in got if text != expected), None)
    breaches = [] if wrong is None else [RowBreach(stream, MANY_ROWS, expected, wrong)]
    return RowsJudged(1, breaches)


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
