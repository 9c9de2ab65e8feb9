"""How many tokens each chunk of a stream held, by the best that the server or a tokenizer gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from detokbench.live.itl import Arrival
from detokbench.live.openai_stream import Answer, Chunk
from detokbench.records.probe import CountedBy
from detokbench.vocab.vocabulary import Vocabulary

_FEWEST_FOR_CUMULATIVE = 4
_Said = TypeVar("_Said", str, list[int])


@dataclass(frozen=True)
class Counted:
    """The tokens of a stream: by what they were counted, chunk by chunk and in all.

    ``totals`` holds the count of the whole answer by every way that there was. It is empty, and
    ``arrivals`` have no tokens, where there was none.
    """

    how: CountedBy
    arrivals: list[Arrival]
    totals: dict[str, int]


def undo_cumulative(answer: Answer) -> bool:
    """Turn a stream whose chunks each repeat all that came before into one of deltas.

    Returns whether the text was cumulative; ids are looked at apart.
    """
    content = answer.content
    with_ids = [chunk for chunk in content if chunk.ids]
    ids = [chunk.ids or [] for chunk in with_ids]
    if _is_cumulative(ids):
        for chunk, new in zip(with_ids, _deltas(ids), strict=True):
            chunk.ids = new
    texts = [chunk.text for chunk in content]
    if not _is_cumulative([text for text in texts if text]):
        return False
    spoken = [chunk for chunk in content if chunk.text]
    for chunk, text in zip(spoken, _deltas([chunk.text for chunk in spoken]), strict=True):
        chunk.text = text
    return True


def _is_cumulative(said: Sequence[_Said]) -> bool:
    """Whether each begins with the one before, and most are longer than it.

    Four in a row are asked for: deltas such as 'a', 'ab' do the same by chance.
    """
    if len(said) < _FEWEST_FOR_CUMULATIVE:
        return False
    pairs = list(pairwise(said))
    if any(after[: len(before)] != before for before, after in pairs):
        return False
    return sum(len(after) > len(before) for before, after in pairs) > len(pairs) / 2


def _deltas(said: Sequence[_Said]) -> list[_Said]:
    return [said[0]] + [after[len(before) :] for before, after in pairwise(said)]


def count_tokens(answer: Answer, vocabulary: Vocabulary | None) -> Counted:
    """Tokens by ids, running usage, log-probabilities, the tokenizer or the total: the first known.

    The tokenizer is given the whole text and never single chunks, whose tokens would differ; its
    counts are scaled to the server's total, if there is one. With nothing but a total the tokens
    are spread evenly over the chunks with text.
    """
    chunks = [chunk for chunk in answer.chunks if chunk.kind in {"content", "final"}]
    retokenised = None if vocabulary is None else _by_tokenizer(chunks, vocabulary)
    ways: list[tuple[CountedBy, list[int] | None]] = [
        ("ids", _each(chunks, lambda chunk: None if chunk.ids is None else len(chunk.ids))),
        ("usage", _by_usage(chunks)),
        ("logprobs", _each(chunks, lambda chunk: chunk.logprobs)),
        ("tokenizer", retokenised),
    ]
    known = [(how, tokens) for how, tokens in ways if tokens is not None]
    totals = {how: sum(tokens) for how, tokens in known}
    if answer.usage is not None:
        totals["usage"] = answer.usage
    if known:
        how, tokens = known[0]
        # Text does not always come apart into the tokens that it was made of.
        scale = answer.usage / totals[how] if how == "tokenizer" and answer.usage else 1
        scaled = [count * scale for count in tokens]
        return Counted(how, _arrivals(chunks, scaled), {str(key): n for key, n in totals.items()})
    if answer.usage is None:
        return Counted("none", _arrivals(chunks, [0] * len(chunks)), {})
    filled = sum(_has_text(chunk) for chunk in chunks)
    each = answer.usage / filled if filled else 0.0
    spread = [each if _has_text(chunk) else 0.0 for chunk in chunks]
    return Counted("usage-total", _arrivals(chunks, spread), {"usage": answer.usage})


def _arrivals(chunks: Sequence[Chunk], tokens: Sequence[float]) -> list[Arrival]:
    """A final frame without tokens is no arrival."""
    return [
        Arrival(chunk.at_s, count)
        for chunk, count in zip(chunks, tokens, strict=True)
        if count or chunk.kind == "content"
    ]


def _each(chunks: Sequence[Chunk], count: Callable[[Chunk], int | None]) -> list[int] | None:
    """The count of each chunk, where no chunk with text lacks one and one is above zero."""
    counts = [count(chunk) for chunk in chunks]
    if any(n is None and _has_text(c) for n, c in zip(counts, chunks, strict=True)):
        return None
    return [n or 0 for n in counts] if any(counts) else None


def _by_usage(chunks: Sequence[Chunk]) -> list[int] | None:
    """Differences of the running count, where every chunk with text carries it."""
    if not any(map(_has_text, chunks)) or any(_has_text(c) and c.usage is None for c in chunks):
        return None
    counts, so_far = [], 0
    for chunk in chunks:
        now = max(so_far, so_far if chunk.usage is None else chunk.usage)
        counts.append(now - so_far)
        so_far = now
    return counts


def _by_tokenizer(chunks: Sequence[Chunk], vocabulary: Vocabulary) -> list[int] | None:
    """Each token of the whole text, given to the chunk that brings its last byte.

    None where the vocabulary has no table of bytes by which to place them.
    """
    from detokbench.vocab.id_bytes import UnsupportedFamilyError

    try:
        table = vocabulary.id_bytes
    except UnsupportedFamilyError:
        return None
    parts = [(chunk.text + chunk.other_text).encode("utf-8", "replace") for chunk in chunks]
    ids = vocabulary.encode(b"".join(parts).decode())
    counts, chunk, reached = [0] * len(parts), 0, len(parts[0]) if parts else 0
    token_end = -table.leading_space(ids)
    for token_id in ids:
        token_end += len(table.pieces[token_id] or b"")
        while reached < token_end and chunk < len(parts) - 1:
            chunk += 1
            reached += len(parts[chunk])
        counts[chunk] += 1
    return counts if any(counts) else None


def _has_text(chunk: Chunk) -> bool:
    return bool(chunk.text or chunk.other_text)
