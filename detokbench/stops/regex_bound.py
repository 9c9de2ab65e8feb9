"""How much text a stop regex needs to see, so that a window of the output's tail can hold it.

SGLang 0.5.23 (``get_max_seq_length`` in sampling/sampling_params.py) knows literals, sets, ``.``,
groups, alternatives, repeats and anchors. Whatever else Python's parser yields counts as 2**30
there: a negated single character (``[^,]``) above all, and the window becomes the whole output
(sglang#30932). Here those have their true bound.

The bound is in characters. SGLang uses it as a number of tokens, one for each character at worst;
a character that is split over several tokens needs more, and can be missed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from detokbench.errors import usage_error

# Python offers no public access to a parsed pattern; `sre_parse`, the old name, is deprecated.
_parser: Any = re._parser  # type: ignore[attr-defined]

# What 0.5.23 has no case for.
_UNKNOWN_TO_SGLANG = {
    "NOT_LITERAL",
    "POSSESSIVE_REPEAT",
    "ATOMIC_GROUP",
    "GROUPREF",
    "GROUPREF_EXISTS",
    "ASSERT",
    "ASSERT_NOT",
    "FAILURE",
}
_WIDTHS = {"LITERAL": 1, "NOT_LITERAL": 1, "IN": 1, "ANY": 1, "AT": 0, "FAILURE": 0}
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}

RegexBound = Callable[[str], "int | None"]
"""A pattern → the most characters it can need, or None for no bound."""


def regex_bound(pattern: str) -> int | None:
    """The most characters that ``pattern`` can span, what it looks ahead and behind at included.

    None where a repeat has no upper limit. Raises a usage error for a pattern that Python's ``re``
    does not accept.
    """
    return _Walk(unknown=()).sequence(_parse(pattern))


def sglang_regex_bound(pattern: str) -> int | None:
    """The same as SGLang 0.5.23 sees it: None as well where it has no case for a construct.

    (Its own value is then 2**30 and more, which no output reaches.)
    """
    return _Walk(_UNKNOWN_TO_SGLANG).sequence(_parse(pattern))


def _parse(pattern: str) -> Any:
    try:
        return _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise usage_error(f"stop regex '{pattern}' is not valid: {error}") from error


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk over a parsed pattern; ``groups`` collects the bounds of its groups."""

    unknown: Collection[str]
    groups: dict[int, int | None] = field(default_factory=dict)

    def sequence(self, items: Any) -> int | None:
        return _combine(sum, [self.item(op.name, value) for op, value in items])

    def item(self, op: str, value: Any) -> int | None:
        if op in self.unknown:
            return None
        if op in _WIDTHS:
            return _WIDTHS[op]
        if op in _REPEATS:
            _, most, body = value
            return _repeated(self.sequence(body), most)
        if op == "GROUPREF":
            return self.groups[value]
        return self.nested(op, value)

    def nested(self, op: str, value: Any) -> int | None:
        """Groups, alternatives and what is looked ahead or behind at."""
        match op:
            case "SUBPATTERN":
                number, _, _, body = value
                self.groups[number] = bound = self.sequence(body)
                return bound
            case "BRANCH":
                branches = value[1]
            case "GROUPREF_EXISTS":
                branches = [branch or [] for branch in value[1:]]
            case "ATOMIC_GROUP":
                branches = [value]
            case "ASSERT" | "ASSERT_NOT":
                branches = [value[1]]
            case _:
                return None  # a construct of a later Python
        return _combine(max, [self.sequence(branch) for branch in branches])


def _repeated(bound: int | None, most: int) -> int | None:
    if most == 0:
        return 0
    return None if bound is None or most >= _parser.MAXREPEAT else bound * most


def _combine(together: Callable[[Iterable[int]], int], bounds: Sequence[int | None]) -> int | None:
    """The sum or the largest of the bounds; none where one of them is missing."""
    known = [bound for bound in bounds if bound is not None]
    return together(known) if len(known) == len(bounds) else None
