"""The protocol of every path: open rows, step them with new ids, end them, get text back.

A row is one sequence. Rows may be opened and ended at any time, as in continuous batching; a
step names the rows that it serves, in any order, each with none, one or several new ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from detokbench.stops.request import StopRequest, StopStream, StopStyle
    from detokbench.vocab.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Flags:
    """How one row's special tokens are rendered; the defaults are both engines'."""

    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True


class DetokPath(Protocol):
    """One path, on one vocabulary, with the state of its open rows."""

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        """Admit one row for each prompt (token ids, possibly none); returns the rows' numbers.

        ``flags`` has one entry for each prompt; None means the defaults for all.
        """

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        """Give ``rows[i]`` its ``new_ids[i]``; returns the text that each row may now send.

        The lists of ids are not changed. Rows must be open: most paths raise KeyError for others,
        none has to look.
        """

    def end(self, row: int) -> str:
        """Close a row; returns text that was still held, as far as the path has a way to."""


@runtime_checkable
class LooksForStops(Protocol):
    """A path that looks for stops itself, in place of the machinery of its style; few do."""

    def open_with_stops(self, prompt: list[int], flags: Flags, stops: StopRequest) -> StopStream:
        """One request of its own, apart from the rows that ``open`` admits."""


class PathClass(Protocol):
    """What the registry knows about a path before it is built."""

    @property
    def name(self) -> str: ...
    @property
    def whose(self) -> str:
        """Whose code does it this way."""

    @property
    def expected_to_fail(self) -> str:
        """Why the gate expects wrong text from this path; empty for one that should be right."""

    @property
    def thread_counts(self) -> tuple[int | None, ...]:
        """Thread counts to measure it with: (None,) for a path without threads, 0 for all."""

    @property
    def stops(self) -> StopStyle | None:
        """How stop strings are looked for around this path; None where nothing belongs to it."""

    @property
    def is_engine(self) -> bool:
        """Whether the code is that of an engine, so that its tokenizer calls cannot be watched."""

    @property
    def summary(self) -> str:
        """What it does, in a line."""

    def __call__(self, vocabulary: Vocabulary) -> DetokPath: ...

    def why_not(self, vocabulary: Vocabulary) -> str | None:
        """Why the path does not apply to ``vocabulary``, or None when it does."""


def flags_or_default(
    prompts: Sequence[list[int]], flags: Sequence[Flags] | None
) -> Sequence[Flags]:
    """One Flags for each prompt."""
    return [Flags()] * len(prompts) if flags is None else flags
