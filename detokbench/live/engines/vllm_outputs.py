"""What our engine sends for a request: its rows, encoded as far as they can be beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.live.engines.vllm_messages import (
    LENGTH,
    STOP,
    Add,
    events_part,
    full_row,
    ids_part,
    logprobs_part,
    row_head,
)

MOST_LOGPROBS = 100
_TOP, _SECOND, _FALL = -0.125, -2.5, -0.25


class WorkloadFile(msgspec.Struct):
    """``outputs``: texts as ids, without an end; ``eos``: the id that ends one."""

    outputs: list[list[int]]
    eos: int


class Rows(NamedTuple):
    """The rows of a request, one a step, and how many they are."""

    rows: Iterator[bytes]
    steps: int


class Outputs:
    """The texts that the engine gives, by number, and their encoded parts."""

    def __init__(self, workload: WorkloadFile) -> None:
        """Raises DetokbenchError where the workload has no text at all."""
        if not workload.outputs:
            raise DetokbenchError("the workload has no outputs")
        self._ids = [[*output, workload.eos] for output in workload.outputs]
        encoded = {i: ids_part([i]) for output in self._ids for i in output}
        self._parts = [[encoded[i] for i in output] for output in self._ids]
        self._logprobs: dict[tuple[int, int], list[bytes]] = {}

    @classmethod
    def read(cls, file: Path) -> Outputs:
        """From a msgpack file. Raises DetokbenchError where it is none of this form."""
        try:
            return cls(msgspec.msgpack.decode(file.read_bytes(), type=WorkloadFile))
        except (OSError, msgspec.MsgspecError) as error:
            raise DetokbenchError(f"cannot read the workload {file}: {error}") from error

    def ids_of(self, number: int | None, max_tokens: int | None) -> tuple[list[int], int]:
        """The ids of a request, and its finish reason.

        Where the text ends before ``max_tokens``, its end's id comes last and the reason is STOP,
        whatever the request says of ``ignore_eos``: vLLM's front end drops the text of that id.
        """
        ids = self._ids[(number or 0) % len(self._ids)]
        if max_tokens is None or max_tokens >= len(ids):
            return ids, STOP
        return ids[: max(max_tokens, 1)], LENGTH

    def rows(self, request: Add, queued_s: float, scheduled_s: float | None) -> Rows:
        """All rows of a request: the first has its events, the last its finish reason.

        ``queued_s`` and ``scheduled_s`` are when it came and when it was begun (monotonic, s);
        ``scheduled_s`` is None for an engine that keeps no statistics and so sends no events.
        """
        ids, reason = self.ids_of(request.number, request.max_tokens)
        count = len(ids)
        index = (request.number or 0) % len(self._ids)
        parts = self._parts[index]
        k = request.logprobs
        logprobs = None if k is None else self._logprobs_of(index, k)
        events = None if scheduled_s is None else events_part(queued_s, scheduled_s)

        def edge(place: int) -> bytes:
            return full_row(
                request.request_id,
                parts[place],
                None if logprobs is None else logprobs[place],
                reason if place == count - 1 else None,
                events if place == 0 else None,
            )

        if count == 1:
            return Rows(iter([edge(0)]), 1)
        head = row_head(request.request_id, 2 if logprobs is None else 3)
        middle: Iterator[bytes] = islice(parts, 1, count - 1)
        if logprobs is not None:
            middle = map(bytes.__add__, middle, islice(logprobs, 1, count - 1))
        return Rows(chain([edge(0)], map(head.__add__, middle), [edge(count - 1)]), count)

    def _logprobs_of(self, index: int, k: int) -> list[bytes]:
        """For each id of a text: its own first, then the k likeliest, of which it is the first.

        The others are further ids of the same text: real tokens, as a model's would be.
        """
        k = min(max(k, 0), MOST_LOGPROBS)
        known = self._logprobs.get((index, k))
        if known is None:
            ids = self._ids[index]
            pool = [*dict.fromkeys(ids), *range(MOST_LOGPROBS)]
            values = [_TOP, *([_TOP] * min(k, 1)), *(_SECOND + _FALL * i for i in range(k - 1))]
            known = [logprobs_part([i, *_alternatives(i, p, k, pool)], values)
                     for p, i in enumerate(ids)]  # fmt: skip
            self._logprobs[(index, k)] = known
        return known


def _alternatives(own: int, place: int, k: int, pool: list[int]) -> list[int]:
    if k == 0:
        return []
    start = place % len(pool)
    others = dict.fromkeys(i for i in islice(chain(pool[start:], pool), 2 * k + 2) if i != own)
    return [own, *islice(others, k - 1)]
