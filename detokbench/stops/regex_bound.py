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
from collections.abc import Callable, Iterable
from typing import Any

from detokbench.errors import usage_error

# Python offers no public access to a parsed pattern; `sre_parse`, the old name, is deprecated.
_parser: Any = re._parser  # type: ignore[attr-defined]

_SINGLE_CHARACTER = {"LITERAL", "IN", "ANY"}
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT"}
# What 0.5.23 has no case for.
_UNKNOWN_TO_SGLANG = {
    "NOT_LITERAL",
    "POSSESSIVE_REPEAT",
    "ATOMIC_GROUP",
    "GROUPREF",
    "GROUPREF_EXISTS",
    "ASSERT",
    "ASSERT_NOT",
}

RegexBound = Callable[[str], "int | None"]
"""A pattern → the most characters it can need, or None for no bound."""


def regex_bound(pattern: str) -> int | None:
    """The most characters that ``pattern`` can span, what it looks ahead and behind at included.

    None where a repeat has no upper limit. Raises a usage error for a pattern that Python's ``re``
    does not accept.
    """
    return _bound(_parse(pattern), {}, unknown=set())


def sglang_regex_bound(pattern: str) -> int | None:
    """The same as SGLang 0.5.23 sees it: None as well where it has no case for a construct.

    (Its own value is then 2**30 and more, which no output reaches.)
    """
    return _bound(_parse(pattern), {}, unknown=_UNKNOWN_TO_SGLANG)


def _parse(pattern: str) -> Any:
    try:
        return _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise usage_error(f"stop regex '{pattern}' is not valid: {error}") from error


def _bound(items: Any, groups: dict[int, int | None], unknown: set[str]) -> int | None:
    """The sum over a sequence of parsed items; ``groups`` collects the bounds of groups."""
    return _sum(_item_bound(str(op), value, groups, unknown) for op, value in items)


def _item_bound(
    op: str, value: Any, groups: dict[int, int | None], unknown: set[str]
) -> int | None:
    if op in unknown:
        return None
    if op in _SINGLE_CHARACTER or op == "NOT_LITERAL":
        return 1
    if op == "AT":
        return 0
    if op in _REPEATS or op == "POSSESSIVE_REPEAT":
        _, most, body = value
        return _repeated(_bound(body, groups, unknown), most)
    if op == "SUBPATTERN":
        number, _, _, body = value
        groups[number] = _bound(body, groups, unknown)
        return groups[number]
    if op == "BRANCH":
        return _largest(_bound(branch, groups, unknown) for branch in value[1])
    if op == "ATOMIC_GROUP":
        return _bound(value, groups, unknown)
    if op in {"ASSERT", "ASSERT_NOT"}:
        return _bound(value[1], groups, unknown)
    if op == "GROUPREF":
        return groups[value]
    if op == "GROUPREF_EXISTS":
        return _largest(_bound(branch or [], groups, unknown) for branch in value[1:])
    return None


def _repeated(bound: int | None, most: int) -> int | None:
    if most == 0:
        return 0
    return None if bound is None or most >= _parser.MAXREPEAT else bound * most


def _sum(bounds: Iterable[int | None]) -> int | None:
    known = list(bounds)
    return None if None in known else sum(bound for bound in known if bound is not None)


def _largest(bounds: Iterable[int | None]) -> int | None:
    known = list(bounds)
    return None if None in known else max(bound for bound in known if bound is not None)
