"""Texts of pairs on one vocabulary: compared stream by stream, what differs shrunk."""

from __future__ import annotations

from dataclasses import dataclass

from detokbench.fidelity.compare import Disagreement, What, disagreement
from detokbench.fidelity.known import Outcome, known_as
from detokbench.fidelity.pairs import Pair
from detokbench.fidelity.streams import streams_for
from detokbench.paths.registry import load_path_class
from detokbench.records.fidelity import PairTexts, TextDifference
from detokbench.verify.find import shown_pieces, storable, stream_facts
from detokbench.verify.kinds import Kind, representatives
from detokbench.verify.shrink import Shrinker
from detokbench.verify.stream import Runner, Stream
from detokbench.vocab.registry import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case

_Key = tuple[str, What, bool]
"""The name of a known difference or "", what differs first, and whether the stream has stops."""


@dataclass(frozen=True)
class TextTask:
    """Compare these pairs on one vocabulary, by its cases and ``fuzz`` random streams."""

    vocabulary: str
    pairs: tuple[Pair, ...]
    cases: tuple[Case, ...]
    fuzz: int
    seed: int
    trust_remote_code: bool = False

    def __str__(self) -> str:
        return f"texts on {self.vocabulary}"


def compare_texts(task: TextTask) -> list[PairTexts]:
    """Run a TextTask, in a process of its own: an engine is imported here."""
    vocabulary = load_vocabulary(task.vocabulary, task.trust_remote_code)
    return [_Comparison(pair, vocabulary).run(task) for pair in task.pairs]


@dataclass(frozen=True)
class _Example:
    stream: Stream
    ids_per_step: int | None
    step: int

    @property
    def size(self) -> int:
        return len(self.stream.prompt) + len(self.stream.output)


class _Comparison:
    """One pair on one vocabulary."""

    def __init__(self, pair: Pair, vocabulary: Vocabulary) -> None:
        self._pair = pair
        self._vocabulary = vocabulary
        self._ours = Runner(load_path_class(pair.ours), vocabulary)
        self._theirs = Runner(load_path_class(pair.theirs), vocabulary)
        self._counts: dict[_Key, int] = {}
        self._smallest: dict[_Key, _Example] = {}

    def run(self, task: TextTask) -> PairTexts:
        vocabulary, pair = self._vocabulary, self._pair
        found = PairTexts(ours=pair.ours, theirs=pair.theirs, vocab=vocabulary.name)
        runners = (self._ours, self._theirs)
        reasons = [runner.path_class.why_not(vocabulary) for runner in runners]
        found.why_not = next((reason for reason in reasons if reason), "")
        if found.why_not:
            return found
        for stream, sizes in streams_for(vocabulary, task.cases, task.fuzz, task.seed):
            if all(runner.can_judge(stream) for runner in runners):
                found.streams += 1
                for size in sizes:
                    found.runs += 1
                    self._take(stream, size)
        found.steps = self._theirs.steps
        found.differing = sum(n for (known, *_), n in self._counts.items() if not known)
        for (known, *_), n in self._counts.items():
            if known:
                found.known[known] = found.known.get(known, 0) + n
        found.differences = [self._describe(key) for key in sorted(self._smallest)]
        return found

    def _look(
        self, ours: Runner, theirs: Runner, stream: Stream, size: int | None
    ) -> tuple[_Key, Disagreement] | None:
        mine, its = ours.run(stream, size), theirs.run(stream, size)
        first = disagreement(mine, its)
        if first is None:
            return None
        outcome = Outcome(stream, self._vocabulary, mine, its, first)
        return (known_as(self._pair.theirs, outcome), first.what, stream.has_stops), first

    def _take(self, stream: Stream, size: int | None) -> None:
        seen = self._look(self._ours, self._theirs, stream, size)
        if seen is None:
            return
        key, first = seen
        self._counts[key] = self._counts.get(key, 0) + 1
        example = _Example(stream, size, first.step)
        if key not in self._smallest or example.size < self._smallest[key].size:
            self._smallest[key] = example

    def _describe(self, key: _Key) -> TextDifference:
        example = self._smallest[key]
        small, size = self._shrink(key, example)
        seen = self._look(self._ours.fresh(), self._theirs.fresh(), small, size)
        if seen is None:  # it shows only beside what was served before
            small, size = example.stream, example.ids_per_step
            first = Disagreement(key[1], example.step, "", "")
        else:
            first = seen[1]
        return TextDifference(
            known=key[0],
            what=key[1],
            runs=self._counts[key],
            input=stream_facts(self._vocabulary.name, small, size),
            pieces=shown_pieces(self._vocabulary.id_bytes, small.output),
            step=first.step,
            ours=storable(first.ours),
            theirs=storable(first.theirs),
            origin=example.stream.origin,
        )

    def _shrink(self, key: _Key, example: _Example) -> tuple[Stream, int | None]:
        ours, theirs = self._ours.fresh(), self._theirs.fresh()

        def shows(stream: Stream, size: int | None) -> bool:
            seen = self._look(ours, theirs, stream, size)
            return seen is not None and seen[0] == key

        kinds = representatives(self._vocabulary.id_bytes, self._vocabulary.encode)
        plain = [ids[0] for kind in (Kind.WORD, Kind.SPACED) if (ids := kinds.get(kind))]
        position = example.step * (example.ids_per_step or len(example.stream.output))
        return Shrinker(shows, plain).shrink(example.stream, example.ids_per_step, position)
