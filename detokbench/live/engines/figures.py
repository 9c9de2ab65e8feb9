"""From what clients saw and when the engine emitted it to the figures of a window; no clock.

All times are ns of one clock; a window holds what came within it, both ends included.

- chunks per token: events with text over the ids whose text they hold;
- stretch of a stream: the time from its first chunk in the window to its last one, over what the
  ids after the first chunk take at T_step; 1 where a front end keeps pace. Of the streams with at
  least ``LEAST_IDS`` ids there the median counts;
- ITL per token: as in ``live.itl``, a gap spread over the ids of the chunk that ends it;
- lag of a chunk: from the engine's emission of its oldest id until the client had it;
- TTFT: from the request's last byte out until the first text is there; it holds the wait for the
  next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from detokbench.live.engines.known_texts import KnownText
from detokbench.live.engines.seen_streams import SeenStream
from detokbench.live.itl import Arrival, token_gaps

LEAST_IDS = 16


@dataclass(frozen=True)
class ChunkIds:
    """A chunk as ids: ``first`` is the place of its oldest id, ``ids`` how many it completes."""

    at_ns: int
    first: int
    ids: int


@dataclass(frozen=True)
class Emitted:
    """When the engine emitted what: ``step_ns[i]`` is that of step ``first_step + i``.

    ``begun`` holds the step of the first id of each request by its number.
    """

    first_step: int
    step_ns: Sequence[int]
    begun: Mapping[int, int]

    def at(self, number: int, place: int) -> int | None:
        """When the id at this place of a request was emitted; None where that is not known."""
        begun = self.begun.get(number)
        if begun is None:
            return None
        step = begun + place - self.first_step
        return self.step_ns[step] if 0 <= step < len(self.step_ns) else None


@dataclass
class Figures:
    """Values of one window. Lists hold (ns, weight)."""

    chunks: int = 0
    ids: int = 0
    stretches: list[float] = field(default_factory=list)
    itl: list[tuple[int, int]] = field(default_factory=list)
    lag: list[tuple[int, int]] = field(default_factory=list)
    ttft: list[tuple[int, int]] = field(default_factory=list)

    @property
    def chunks_per_token(self) -> float | None:
        return self.chunks / self.ids if self.ids else None

    @property
    def stretch(self) -> float | None:
        return median(self.stretches) if self.stretches else None


def chunk_ids(stream: SeenStream, known: KnownText) -> list[ChunkIds]:
    """The ids of each chunk, by the length of the text up to its end."""
    chunks, length, before = [], 0, 0
    for chunk in stream.chunks:
        length += len(chunk.text.encode())
        after = min(known.ids_in(length), stream.max_tokens)
        chunks.append(ChunkIds(chunk.at_ns, before, after - before))
        before = after
    return chunks


def window_figures(
    streams: Iterable[SeenStream],
    known: Callable[[int], KnownText],
    emitted: Emitted,
    begin_ns: int,
    end_ns: int,
    t_step_ns: int,
) -> Figures:
    """The figures of all streams; ``known`` gives the text of a request by its number."""
    figures = Figures()
    for stream in streams:
        chunks = chunk_ids(stream, known(stream.number))
        inside = [chunk for chunk in chunks if begin_ns <= chunk.at_ns <= end_ns]
        if not inside:
            continue
        figures.chunks += len(inside)
        figures.ids += sum(chunk.ids for chunk in inside)
        figures.itl += _itl(chunks, begin_ns, end_ns)
        figures.lag += _lags(stream.number, inside, emitted)
        if inside[0] is chunks[0]:
            figures.ttft.append((chunks[0].at_ns - stream.sent_ns, 1))
        stretch = stretch_of(inside, t_step_ns)
        if stretch is not None:
            figures.stretches.append(stretch)
    return figures


def stretch_of(chunks: Sequence[ChunkIds], t_step_ns: int) -> float | None:
    """Wall over ideal of one stream's chunks; None for fewer than ``LEAST_IDS`` ids after one."""
    ids = sum(chunk.ids for chunk in chunks[1:])
    if ids < LEAST_IDS:
        return None
    return (chunks[-1].at_ns - chunks[0].at_ns) / (ids * t_step_ns)


def _itl(chunks: Sequence[ChunkIds], begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
    filled = [chunk for chunk in chunks if chunk.ids]
    gaps = token_gaps([Arrival(chunk.at_ns, chunk.ids) for chunk in filled])
    return [
        (round(gap.itl_s), int(gap.tokens))  # in the unit of the arrivals: ns
        for gap, chunk in zip(gaps, filled[1:], strict=True)
        if begin_ns <= chunk.at_ns <= end_ns
    ]


def _lags(number: int, chunks: Sequence[ChunkIds], emitted: Emitted) -> list[tuple[int, int]]:
    found = []
    for chunk in chunks:
        at_ns = emitted.at(number, chunk.first) if chunk.ids else None
        if at_ns is not None:
            found.append((chunk.at_ns - at_ns, 1))
    return found
