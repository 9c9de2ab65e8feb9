"""Which requests run at each step: they arrive, take a row of the batch, and end.

``closed``: as many as the batch holds, and one that ends is replaced at the next step.
``poisson``: arrivals at a rate, independent of each other; they wait while the batch is full.
Lengths are drawn evenly from a quarter of the longest up. In a closed batch the first requests
begin anywhere in their length, so that ends are spread from the start.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from detokbench.live.plan import Arrival

_SHORTEST = 4


class Running:
    """One request of the batch. ``sent`` counts the ids handed on, ``length`` those it will get.

    ``output`` grows only where somebody looks for stops in it.
    """

    __slots__ = ("ids", "length", "number", "output", "position", "prompt", "sent")

    def __init__(self, number: int, prompt: list[int], ids: list[int], length: int) -> None:
        self.number = number
        self.prompt: list[int] | None = prompt
        self.ids = ids
        self.length = length
        self.output: list[int] = []
        self.position = 0
        self.sent = 0


class Requests:
    """Makes requests: number n has the text of row n, and a length that follows from the seed."""

    def __init__(
        self,
        prompts: Sequence[list[int]],
        outputs: Sequence[list[int]],
        max_tokens: int,
        seed: int,
        first: int = 0,
    ) -> None:
        self._prompts = prompts
        self._outputs = outputs
        self._max_tokens = max_tokens
        self._rng = random.Random(f"{seed}:{first}")
        self.next_number = first

    def make(self, part_way: bool = False) -> Running:
        """The next one; ``part_way`` leaves it a random part of its length."""
        number = self.next_number
        self.next_number += 1
        row = number % len(self._outputs)
        ids = self._outputs[row]
        most = min(self._max_tokens, len(ids))
        length = self._rng.randint(max(most // _SHORTEST, 1), most)
        if part_way:
            length = self._rng.randint(1, length)
        return Running(number, self._prompts[row], ids, length)


class ArrivalTimes:
    """When requests of a Poisson process arrive, in ns after the start."""

    def __init__(self, rate: float, seed: int) -> None:
        self._rng = random.Random(f"arrivals:{seed}")
        self._rate = rate
        self._next_ns = self._gap_ns()

    def _gap_ns(self) -> int:
        return round(self._rng.expovariate(self._rate) * 1e9)

    def until(self, now_ns: int) -> int:
        """How many have arrived since the last call."""
        count = 0
        while self._next_ns <= now_ns:
            count += 1
            self._next_ns += self._gap_ns()
        return count


class Batch:
    """The requests that run and those that wait.

    In a closed batch a few always wait, announced before they begin, so that a client can have
    its stream open when the first id comes.
    """

    def __init__(
        self, size: int, requests: Requests, arrival: Arrival, times: ArrivalTimes
    ) -> None:
        self._size = size
        self._requests = requests
        self._arrival = arrival
        self._times = times
        self._spare = 8 + size // 8
        self.running: list[Running] = []
        self.waiting: deque[Running] = deque()
        self.arrived = 0

    def begin(self) -> list[int]:
        """Fill a closed batch; the numbers of the requests that there are now."""
        if self._arrival == "closed":
            self.running = [self._requests.make(part_way=True) for _ in range(self._size)]
            self.arrived = self._size
        return [request.number for request in self.running] + self._arrive(0)

    def refill(self, since_start_ns: int) -> list[int]:
        """Let requests arrive and take the free rows; the numbers of the new arrivals."""
        arrived = self._arrive(since_start_ns)
        while self.waiting and len(self.running) < self._size:
            self.running.append(self.waiting.popleft())
        if self._arrival == "closed":
            arrived += self._arrive(since_start_ns)
        return arrived

    def _arrive(self, since_start_ns: int) -> list[int]:
        if self._arrival == "closed":
            count = self._spare - len(self.waiting)
        else:
            count = self._times.until(since_start_ns)
        new = [self._requests.make() for _ in range(count)]
        self.waiting.extend(new)
        self.arrived += count
        return [request.number for request in new]

    def drop(self, numbers: set[int]) -> int:
        """Take out requests that were aborted; returns how many were still running."""
        before = len(self.running)
        self.running = [request for request in self.running if request.number not in numbers]
        return before - len(self.running)
