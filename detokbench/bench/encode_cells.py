"""Which calls ``encode`` times, at which lengths and batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from detokbench.bench.plan import Cell, PreparedEncode

STALL_PATHS = ("fast", "slow", "byte-table")
"""Paths whose admission is measured; the first is the one whose cost grows with the prompt."""
_MOST_BATCHED_LENGTHS = 3


def pick_lengths(lengths: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Those of the lengths that are nearest to the wanted ones, by ratio, without repeats."""
    nearest = (min(lengths, key=lambda n: max(n / want, want / n)) for want in wanted)
    return sorted(dict.fromkeys(nearest))


def encode_cells(
    prepared: PreparedEncode,
    lengths: Sequence[int],
    batches: Sequence[int],
    admitted: Sequence[int],
    paths: Sequence[str],
    cpus: int,
    most_ids: int,
) -> list[Cell]:
    """One text a call at every length, several at a few of them, and each path's admissions.

    A batch of 1 stands for one text a call; with others, no call has more than ``most_ids`` ids.
    """
    cells = [
        Cell(path=name, metric="encode", batch=1, prompt_len=length)
        for name in prepared.single_calls
        for length in lengths
    ]
    for name in prepared.list_calls:
        for batch in batches:
            if batch > 1:
                cells += _batched(name, batch, _few(lengths, most_ids // batch), cpus)
    for path in paths:
        for length in admitted:
            cells.append(Cell(path=path, metric="admit", batch=1, prompt_len=length))
            cells.append(Cell(path=path, metric="first_token", batch=1, prompt_len=length))
    return cells


def _batched(name: str, batch: int, lengths: Sequence[int], cpus: int) -> Iterator[Cell]:
    for length in lengths:
        for threads in dict.fromkeys((1, cpus)):
            yield Cell(
                path=name, metric="encode_batch", batch=batch, prompt_len=length, threads=threads
            )


def _few(lengths: Sequence[int], longest: int) -> list[int]:
    """The shortest, the middle and the longest of those that are not too long."""
    fitting = sorted(length for length in lengths if length <= longest)
    if len(fitting) <= _MOST_BATCHED_LENGTHS:
        return fitting
    return [fitting[0], fitting[len(fitting) // 2], fitting[-1]]
