"""What a worker process of ``verify`` is asked and answers, and what it keeps between tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from detokbench.errors import DetokbenchError
from detokbench.paths.registry import load_path_class
from detokbench.records.schema import NotApplicable
from detokbench.records.verify import CaseResult, Difference, Growth, VocabFacts
from detokbench.verify.laws import Law
from detokbench.verify.stream import Runner
from detokbench.verify.tally import Tally
from detokbench.vocab.id_bytes import UnsupportedFamilyError
from detokbench.vocab.registry import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case

Part = Literal["texts", "kinds", "fuzz", "rows", "work"]


@dataclass(frozen=True)
class Bench:
    """What all tasks share: the paths by name, the seed, and whether hub code may run."""

    paths: tuple[str, ...]
    seed: int
    trust_remote_code: bool = False


@dataclass(frozen=True)
class JudgeTask:
    """Put the streams of one part of a run through all paths, on one vocabulary."""

    vocabulary: str
    part: Part
    numbers: range = range(0)
    """Numbers of random streams, for the part ``fuzz``."""
    many_rows: bool = False
    """For the part ``rows``: whether to open very many of them too."""

    def __str__(self) -> str:
        return f"{self.part} on {self.vocabulary}"


@dataclass
class Judged:
    """What a JudgeTask gives; ``differences`` and ``growth`` for rows and work only."""

    tally: Tally = field(default_factory=Tally)
    differences: list[Difference] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)


@dataclass(frozen=True)
class FindTask:
    """Shrink what broke laws on one vocabulary, and run its cases."""

    vocabulary: str
    laws: frozenset[Law]
    tally: Tally
    cases: tuple[Case, ...]

    def __str__(self) -> str:
        return f"cases and shrinking on {self.vocabulary}"


@dataclass
class Found:
    """What a FindTask gives."""

    differences: list[Difference] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """About what the cases ask for."""
    tally: Tally = field(default_factory=Tally)


@dataclass
class Looked:
    """A vocabulary's facts and the paths that do not apply, or why it cannot be judged at all."""

    facts: VocabFacts | None = None
    not_applicable: list[NotApplicable] = field(default_factory=list)
    problem: str = ""


@cache
def _load(name: str, trust_remote_code: bool) -> Vocabulary:
    return load_vocabulary(name, trust_remote_code)


def vocabulary_for(bench: Bench, name: str) -> Vocabulary:
    """A vocabulary, loaded once in a process."""
    return _load(name, bench.trust_remote_code)


def look_at(bench: Bench, name: str) -> Looked:
    """Load a vocabulary and ask the paths whether they apply to it."""
    try:
        vocabulary = vocabulary_for(bench, name)
        table = vocabulary.id_bytes
    except DetokbenchError as error:
        return Looked(problem=str(error))
    except UnsupportedFamilyError as error:
        return Looked(problem=f"'{name}' has no bytes to judge texts by: {error}")
    if not any(table.pieces):
        return Looked(problem=f"'{name}' has no id with any text")
    classes = [load_path_class(path) for path in bench.paths]
    reasons = [(path.name, path.why_not(vocabulary)) for path in classes]
    facts = VocabFacts(
        name=vocabulary.name,
        ids=vocabulary.size,
        tokenizer="Rust" if vocabulary.is_rust else "Python",
        family=table.family,
        source=vocabulary.source,
    )
    return Looked(facts, [NotApplicable(path=path, why=why) for path, why in reasons if why])


def runners_for(bench: Bench, vocabulary: Vocabulary) -> dict[str, Runner]:
    """The paths that apply to a vocabulary, ready to run."""
    classes = [load_path_class(name) for name in bench.paths]
    return {
        path.name: Runner(path, vocabulary) for path in classes if path.why_not(vocabulary) is None
    }
