"""Tokenizer calls a step: as the chapter counts them, and as the engines make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from detokbench.model.stream_interval import chunks_per_step

TAIL_STR = "tail_str"


@dataclass(frozen=True, slots=True)
class Calls:
    """A step of the whole batch, on average over steps."""

    calls: float
    """Calls from Python into the tokenizer."""
    windows: float
    """Id windows turned into text by them. A ``batch_decode`` call has one for each row: in
    transformers 4.57 to 5.24 it is a Python loop, so its cost goes with the windows."""


_CHAPTER: dict[str, Callable[[int], int]] = {
    "slow": lambda batch: 2 * batch,
    "fast": lambda batch: batch,
    "batch-decode": lambda batch: 2,
    TAIL_STR: lambda batch: 2 * batch,
}


def chapter_calls(path: str, batch: int) -> int:
    """Calls a step in the chapter's cost table; for ``tail_str`` the most there can be.

    Raises KeyError for a path that the table does not have.
    """
    return _CHAPTER[path](batch)


def engine_calls(path: str, batch: int, interval: int = 1, ids_per_step: int = 1) -> Calls:
    """Calls and windows a step of ``batch`` requests that stream, in vLLM 0.33.0 and SGLang 0.5.23.

    The stream interval changes nothing where every id is decoded at every step. Raises KeyError
    for a path that is not one of ours. ``tail_str`` depends on the stops too: see
    ``detokbench.model.tail_str``.
    """
    return _ENGINE[path](batch, interval, ids_per_step)


def _one_a_row(batch: int, interval: int, ids_per_step: int) -> Calls:
    return Calls(batch, batch)


def _one_an_id(batch: int, interval: int, ids_per_step: int) -> Calls:
    return Calls(batch * ids_per_step, batch * ids_per_step)


def _slow(batch: int, interval: int, ids_per_step: int) -> Calls:
    """Three calls an id: ``convert_ids_to_tokens``, then both windows to strings."""
    ids = batch * ids_per_step
    return Calls(3 * ids, 2 * ids)


def _two_a_batch(batch: int, interval: int, ids_per_step: int) -> Calls:
    """Two calls in every step in which any row has a chunk; the rows' phases are independent."""
    share = chunks_per_step(interval, ids_per_step)
    return Calls(2 * (1 - (1 - share) ** batch), 2 * batch * share)


def _two_a_chunk(batch: int, interval: int, ids_per_step: int) -> Calls:
    windows = 2 * batch * chunks_per_step(interval, ids_per_step)
    return Calls(windows, windows)


def _none(batch: int, interval: int, ids_per_step: int) -> Calls:
    return Calls(0, 0)


_ENGINE: dict[str, Callable[[int, int, int], Calls]] = {
    "naive": _one_an_id,
    "text-streamer": _one_a_row,
    "slow-uncached": _slow,
    "slow": _slow,
    "fast": _one_an_id,
    "batch-decode": _two_a_batch,
    "row-decode": _two_a_chunk,
    "rust-batch": _two_a_batch,
    "byte-table": _none,
}
