"""What only a ``verify`` record has: its ``details``.

A path's verdict on a law holds for all streams of a vocabulary that the law could be judged by.
Nothing here is a time but ``Growth``'s two, which illustrate and decide nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from detokbench.records.schema import Record

Verdict = Literal["pass", "differs", "error", "n/a"]
"""``error``: the path raised. ``n/a``: path or law does not apply, or nothing was judged."""
NO_STREAM = "no stream that the law could be judged by"
"""Why a law is ``n/a`` for a path that applies."""
GrowthClass = Literal["flat", "linear", "worse"]


class VocabFacts(msgspec.Struct, kw_only=True):
    """One of the vocabularies, and what the bytes of its ids come from."""

    name: str
    ids: int
    tokenizer: str
    family: str
    source: str


class LawFacts(msgspec.Struct, kw_only=True):
    """A law as screens name it, and what it says in one line."""

    name: str
    says: str


class Cell(msgspec.Struct, kw_only=True):
    """One path under one law on one vocabulary."""

    path: str
    law: str
    vocab: str
    verdict: Verdict
    streams: int
    """Streams by which the law was judged."""
    broken: int
    """Those of them that broke it."""
    figure: str = ""
    """What a law measures beside its verdict, such as the longest wait: ``7 ids``."""
    why: str = ""
    """Why the path or the law does not apply."""


class StreamFacts(msgspec.Struct, kw_only=True):
    """One input, small enough to be read. ``output`` may hold what is no id at all."""

    vocab: str
    prompt: list[Any]
    output: list[Any]
    ids_per_step: int | None
    """None for all in one step."""
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    stop: list[str] = []
    stop_ids: list[int] = []
    min_tokens: int = 0
    keep_stop: bool = False
    ended: bool = True
    rows: int = 1
    """Rows that were open at the same time."""


class Seen(msgspec.Struct, kw_only=True):
    """What one path made of an input."""

    path: str
    laws: list[str]
    """The laws that it broke."""
    step: int
    """The step, from 1, at which it first went wrong; one more than the steps for the end."""
    expected: str
    """What should have been sent by the end of that step."""
    got: str
    """What had been sent by the end of that step."""
    text: str
    """The whole text that came."""
    expected_stop: str = ""
    """How a stream with stops should have ended: ``stopped by 'DE', 2 ids kept``."""
    got_stop: str = ""
    """How it ended."""
    error: str = ""
    """The exception that ended the stream."""
    counted: dict[str, int] = {}
    """Counters of the path that moved, such as ``rebuilt_streams``."""


class Difference(msgspec.Struct, kw_only=True):
    """The smallest input found that makes some paths break some laws."""

    input: StreamFacts
    pieces: list[str]
    """The bytes of each id of the output, as Python writes them; ``no id`` for what is none."""
    prompt_pieces: list[str]
    kinds: list[str] = []
    """The kinds of ids in it that are not plain text."""
    right: str
    """The right text."""
    seen: list[Seen]
    origin: str
    """Where the stream came from: a text, a case, the kinds of ids, a number of the fuzz."""
    report: str = ""
    """The public report that it reproduces, by the case that it comes from."""
    also: list[str] = []
    """Other vocabularies with which a like input makes some of these paths break these laws."""
    like: str = ""
    """A case in whose input the same paths break the same laws."""
    command: str = ""
    """A command line that shows it."""


class Growth(msgspec.Struct, kw_only=True):
    """Ids handed to the tokenizer a step, while one stream grows."""

    path: str
    vocab: str
    stream: str
    """What the stream is made of."""
    lengths: list[int]
    """Ids of output so far."""
    ids_a_step: list[float]
    """Mean number of ids that a step handed to the tokenizer, around each length."""
    growth: GrowthClass
    first_us: float
    last_us: float
    """Measured µs a step at the first and the last length: an illustration."""
    source: Literal["measured", "modelled"] = "measured"
    """Modelled for DecodeStream, which hides its window."""


class CaseResult(msgspec.Struct, kw_only=True):
    """One case through one path."""

    case: str
    title: str
    report: str
    vocab: str
    path: str
    verdict: Verdict
    expected_to_differ: bool
    """Whether the case file says that this path differs."""
    expected: str = ""
    """What the case expects, in words, where something else came; a text as Python writes it."""
    got: str = ""
    """What came, where it was not what the case expects."""


class VerifyDetails(msgspec.Struct, kw_only=True):
    """The details of a ``verify`` record."""

    laws: list[LawFacts]
    vocabularies: list[VocabFacts] = []
    paths: list[str]
    required: list[str]
    """Paths that claim to be right: the run has failed where one of them breaks a law."""
    cells: list[Cell]
    differences: list[Difference]
    more_differences: int
    """Distinct further inputs that were found and are not listed."""
    growth: list[Growth]
    cases: list[CaseResult]
    streams: int
    """Streams that ran, each through every path."""
    steps: int
    """Steps of paths that ran."""
    seconds: float
    seed: int
    fuzz: int
    """Random streams among them."""
    failures: list[str] = []
    """Parts of the run that did not finish, each with the reason."""


def verify_details(record: Record) -> VerifyDetails:
    """The details of a record. Raises ``msgspec.ValidationError`` for another form."""
    return msgspec.convert(record.details, VerifyDetails)
