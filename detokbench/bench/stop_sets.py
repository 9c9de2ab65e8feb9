"""The stops of a request, in the sets that ``tail-str`` measures one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from detokbench.errors import usage_error
from detokbench.stops.regex_bound import regex_bound
from detokbench.stops.tail_window import Encode
from detokbench.stops.validation import refuse_empty_stop

DEFAULT_STOP = "</answer>"
DEFAULT_STOP_TOKENS = 40
MOST_STOP_TOKENS = 1024
# The texts do not contain "<|", so that a stop that begins with it suppresses no chunk and cuts no
# scan short: what grows with its length is seen alone.
_SYNTHETIC_START = "<|"


class StopSet(msgspec.Struct, frozen=True, kw_only=True):
    """The stop strings and regexes of one request. ``name`` is how tables and records call it."""

    name: str
    strings: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()
    tokens: int | None = None
    """Tokens of the longest string; None where there are only regexes."""


def check_stops(strings: Sequence[str], regexes: Sequence[str]) -> None:
    """Refuse stops that no request could have (exit code 2), without loading anything."""
    for string in strings:
        refuse_empty_stop(string, "--stop")
    if not all(regexes):
        raise usage_error("--stop-regex: an empty pattern matches at once; give it some text")
    for regex in regexes:
        regex_bound(regex)
        try:
            re.compile(regex)
        except re.error as error:
            raise usage_error(f"stop regex '{regex}' is not valid: {error}") from error


def given_sets(
    strings: Sequence[str], regexes: Sequence[str], tokens: Sequence[int], encode: Encode
) -> list[StopSet]:
    """Each stop on its own, then all of them as the stops of one request.

    ``tokens`` are lengths of synthetic stop strings, which count as given too.
    """
    alone = [
        *(_set_of(printable(string), (string,), (), encode) for string in strings),
        *synthetic_sets(tokens, encode),
        *(_set_of(f"/{printable(regex)}/", (), (regex,), encode) for regex in regexes),
    ]
    if len(alone) < 2:
        return alone
    all_strings = tuple(string for one in alone for string in one.strings)
    return [*alone, _set_of(f"all {len(alone)} stops", all_strings, tuple(regexes), encode)]


def one_set(strings: Sequence[str]) -> StopSet:
    """All of some stop strings as those of one request."""
    return StopSet(name=", ".join(map(printable, strings)), strings=tuple(strings))


def synthetic_sets(tokens: Sequence[int], encode: Encode) -> list[StopSet]:
    """One stop string of each length in tokens."""
    return [
        _set_of(f"{count} token{'' if count == 1 else 's'}", (synthetic_stop(count, encode),), (),
                encode)
        for count in tokens
    ]  # fmt: skip


def _set_of(
    name: str, strings: tuple[str, ...], regexes: tuple[str, ...], encode: Encode
) -> StopSet:
    tokens = max((len(encode(string)) for string in strings), default=None)
    return StopSet(name=name, strings=strings, regexes=regexes, tokens=tokens)


def printable(stop: str) -> str:
    r"""A stop as tables show it: ``\n`` for a line break."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in stop)


def synthetic_stop(tokens: int, encode: Encode) -> str:
    """A stop string of so many tokens: the beginning of an English sentence that goes on for ever.

    Raises a usage error for more than ``MOST_STOP_TOKENS``, or where the vocabulary merges so much
    that no beginning of it has this length.
    """
    if tokens > MOST_STOP_TOKENS:
        raise usage_error(f"--stop-tokens: {tokens} is more than {MOST_STOP_TOKENS}")
    text = ""
    for sentence in _sentences():
        text += sentence
        if len(encode(text)) > tokens + 8:
            break
    length = _longest(len(text), lambda length: len(encode(text[:length])) <= tokens)
    # Tokens do not grow evenly with characters: look around the place that bisection found.
    for candidate in range(min(length + 8, len(text)), max(length - 40, 0), -1):
        if len(encode(text[:candidate])) == tokens:
            return text[:candidate]
    raise usage_error(f"--stop-tokens: no stop string of {tokens} tokens with this vocabulary")


def _sentences() -> Iterator[str]:
    yield f"{_SYNTHETIC_START} the answer ends here|>"
    number = 1
    while True:
        yield f" and what follows in part {number} is not meant for the reader of this page,"
        number += 1


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest length up to ``most`` that fits, where every shorter one does too (bisection)."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
