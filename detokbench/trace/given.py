"""What a trace is given to stream: texts and ids of the command line, or a shipped case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from detokbench.errors import usage_error
from detokbench.grammar import nearest, parse_id_list
from detokbench.paths.protocol import PathClass
from detokbench.verify.case_results import size_to_show, stream_of
from detokbench.verify.stream import Runner, Stream
from detokbench.vocab.registry import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case, shipped_cases


class Given:
    """A prompt or an output, as text or as ids."""

    def __init__(self, text: str | None, ids: str | None, what: str) -> None:
        if text is not None and ids is not None:
            raise usage_error(f"--{what} and --{what}-ids exclude each other")
        refuse_broken(text or "", f"--{what}", f"--{what}-ids for bytes that are not")
        self.is_missing = text is None and ids is None
        self._text = text
        self._ids = None if ids is None else parse_id_list(ids, f"--{what}-ids")

    def ids(self, vocabulary: Vocabulary) -> list[int]:
        """The ids, which may be none of the vocabulary's."""
        if self._ids is not None:
            return self._ids
        return vocabulary.encode(self._text or "")


def refuse_broken(text: str, option: str, instead: str) -> None:
    """The shell's bytes that are no UTF-8 reach us as lone surrogates, which nothing can encode."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise usage_error(f"{option}: the text is not valid UTF-8; give {instead}")


def refuse_together(option: str, given: Mapping[str, bool]) -> None:
    """Raise a usage error for the first of the others that is given beside ``option``."""
    for other, is_given in given.items():
        if is_given:
            raise usage_error(f"{option} and {other} exclude each other")


@dataclass(frozen=True)
class GivenCase:
    """One row of a shipped case as a stream."""

    case: Case
    row: int
    vocabulary: Vocabulary
    stream: Stream

    def ids_per_step(self, path: PathClass) -> int:
        """The number, of those that the case asks for, that shows best what the path does."""
        row = self.case.rows(self.vocabulary.encode)[self.row - 1]
        if path.why_not(self.vocabulary) is not None:
            return 1
        return size_to_show(self.case, row, self.stream, Runner(path, self.vocabulary))

    def says_of(self, path: str) -> list[str]:
        """What stands in the case, and what it says of a path, in a line each."""
        rows = len(self.case.tables)
        which = f", row {self.row} of {rows}" if rows > 1 else ""
        report = f" ({self.case.report})" if self.case.report else ""
        lines = [f"case {self.case.name}{report}{which}: {self.case.title}"]
        if path in self.case.differ:
            lines.append(f"the case says of {path}: {self.case.differ[path]}")
        return lines


def given_case(name: str, row: int) -> GivenCase:
    """A row, from 1, of a shipped case.

    Raises a usage error for a name that no shipped case has, and for a row that the case lacks.
    """
    cases = {case.name: case for case in shipped_cases()}
    if name not in cases:
        raise usage_error(f"--case: unknown '{name}'{nearest(name, list(cases))}")
    case = cases[name]
    if row > len(case.tables):
        rows = f"{len(case.tables)} row{'' if len(case.tables) == 1 else 's'}"
        raise usage_error(f"--row: case {name} has {rows}, got {row}")
    vocabulary = load_vocabulary(case.vocabulary)
    stream = stream_of(case.rows(vocabulary.encode)[row - 1], f"case {name}")
    return GivenCase(case, row, vocabulary, stream)
