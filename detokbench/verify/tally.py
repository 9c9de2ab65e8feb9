"""How often each path was judged by each law and broke it, and by which streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from detokbench.verify.judge import Judgement
from detokbench.verify.laws import Law
from detokbench.verify.stream import Stream

Key = tuple[str, Law]
"""A path and a law."""
_MOST_SHAPES = 8


@dataclass(frozen=True, slots=True)
class Example:
    """A stream that broke a law, and where: ``position`` is an index into its output."""

    stream: Stream
    ids_per_step: int | None
    position: int

    @property
    def size(self) -> int:
        return len(self.stream.prompt) + len(self.stream.output)


@dataclass
class Tally:
    """What was seen on one vocabulary."""

    judged: Counter[Key] = field(default_factory=Counter)
    broken: Counter[Key] = field(default_factory=Counter)
    longest_wait: dict[str, int] = field(default_factory=dict)
    examples: dict[Key, dict[str, Example]] = field(default_factory=dict)
    streams: int = 0
    steps: int = 0

    def add(self, path: str, stream: Stream, result: Judgement, shape: str) -> None:
        """Count one stream through one path. Streams of one ``shape`` count as one example."""
        for law in result.judged:
            self.judged[path, law] += 1
        for law in result.broken:
            self.broken[path, law] += 1
        waited = max(self.longest_wait.get(path, 0), result.longest_wait)
        self.longest_wait[path] = waited
        for breach in result.breaches:
            per_step = breach.ids_per_step or len(stream.output)
            position = min(len(stream.output), breach.step * per_step)
            self._keep((path, breach.law), shape, Example(stream, breach.ids_per_step, position))

    def _keep(self, key: Key, shape: str, example: Example) -> None:
        """The shortest example of each shape, of the first few shapes in order of length."""
        kept = self.examples.setdefault(key, {})
        if shape in kept and kept[shape].size <= example.size:
            return
        kept[shape] = example
        if len(kept) > _MOST_SHAPES:
            del kept[max(kept, key=lambda name: kept[name].size)]

    def merge(self, other: Tally) -> None:
        """Add what another process has seen."""
        self.judged.update(other.judged)
        self.broken.update(other.broken)
        self.streams += other.streams
        self.steps += other.steps
        for path, waited in other.longest_wait.items():
            self.longest_wait[path] = max(self.longest_wait.get(path, 0), waited)
        for key, examples in other.examples.items():
            for shape, example in examples.items():
                self._keep(key, shape, example)
