"""The one grammar of all commands: durations, counts and batch lists.

Durations need a unit (``4.48ms``, ``10us``). ``1k`` is 1,024. ``1..512`` runs through the powers
of two, ``64..512:64`` in steps with both ends, and commas join parts (``1,32,128..512``). Ids may
be any whole number: ``9906,-1,2**63``, and ``128010*20`` repeats one.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from detokbench.errors import usage_error

_SECONDS_PER_UNIT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(ns|us|µs|μs|ms|s)\s*")
_COUNT = re.compile(r"\s*(\d+)\s*([kK]?)\s*")
_MAX_COUNT = 1 << 24
_MAX_DURATION_S = 24 * 3600.0
_ID = re.compile(r"\s*(-?\d{1,40})(?:\*\*(\d{1,3}))?(?:\*(\d{1,6}))?\s*")
_MAX_IDS = 1 << 17
_MIN_RATE, _MAX_RATE = 1e-3, 1e6
_Word = TypeVar("_Word", bound=str)


def parse_duration_s(text: str, what: str = "duration") -> float:
    """``"4.48ms"`` → seconds. The unit is mandatory; above zero, and at most a day."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise usage_error(
            f"{what}: '{text}' is not a duration; write a number and a unit, such as 4.48ms or 10us"
        )
    seconds = float(match[1]) * _SECONDS_PER_UNIT[match[2]]
    if not 0 < seconds <= _MAX_DURATION_S:
        raise usage_error(f"{what}: '{text}' must be longer than zero, and at most a day (86400s)")
    return seconds


def check_rate(rate: float, what: str = "--rate") -> float:
    """A rate a second, which must be one that a stream of arrivals can have."""
    if not _MIN_RATE <= rate <= _MAX_RATE:  # nor is it a NaN
        raise usage_error(f"{what}: {rate:g} a second must lie between {_MIN_RATE:g} and 1,000,000")
    return rate


def parse_count(text: str, what: str = "count", least: int = 1) -> int:
    """``"8k"`` → 8192; a whole number of at least ``least``, which is 1 or, for a context, 0."""
    match = _COUNT.fullmatch(text)
    if match is None:
        raise usage_error(
            f"{what}: '{text}' is not a whole number of {least} or more (1k means 1,024)"
        )
    count = int(match[1]) * (1024 if match[2] else 1)
    if not least <= count <= _MAX_COUNT:
        raise usage_error(f"{what}: '{text}' must lie between {least} and {_MAX_COUNT:,}")
    return count


def parse_count_list(text: str, what: str = "list", least: int = 1) -> list[int]:
    """``"1..8,64..256:64"`` → ``[1, 2, 4, 8, 64, 128, 192, 256]``, in order, without repeats."""
    counts: list[int] = []
    for part in text.split(","):
        if not part.strip():
            raise usage_error(f"{what}: '{text}' has an empty part; write for example 1,32,256")
        counts.extend(_parse_part(part, what, least))
    return list(dict.fromkeys(counts))


def _parse_part(part: str, what: str, least: int) -> Iterable[int]:
    if ".." not in part:
        return [parse_count(part, what, least)]
    first_text, _, rest = part.partition("..")
    last_text, colon, step_text = rest.partition(":")
    if not first_text.strip() or not last_text.strip():
        raise usage_error(f"{what}: '{part}' lacks an end; write for example 1..512")
    first, last = parse_count(first_text, what, least), parse_count(last_text, what, least)
    if first > last:
        raise usage_error(f"{what}: '{part}' runs backwards; write {last}..{first}")
    if colon:
        steps = range(first, last, parse_count(step_text, what))
        return [*steps, last]
    powers = (1 << exponent for exponent in range(_MAX_COUNT.bit_length()))
    return [first, *(power for power in powers if first < power < last), last]


def parse_id_list(text: str, what: str = "ids") -> list[int]:
    """``"9906,-1,2**63,128010*3"`` → ids as they stand, of any size and sign."""
    ids: list[int] = []
    for part in text.split(","):
        match = _ID.fullmatch(part)
        if match is None:
            raise usage_error(
                f"{what}: '{part}' is not a whole number; write ids with commas, such as "
                "9906,1917 or 2**32, and 128010*20 for one that repeats"
            )
        number = int(match[1])
        if match[2]:
            number = -(abs(number) ** int(match[2])) if number < 0 else number ** int(match[2])
        ids.extend([number] * int(match[3] or 1))
        if len(ids) > _MAX_IDS:
            raise usage_error(f"{what}: more than {_MAX_IDS:,} ids")
    return ids


def no_such(kind: str, name: str, known: Sequence[str]) -> str:
    """What to say of a name that is none of the known: as a file it is missing, else misspelt."""
    if "/" in name or name.endswith((".toml", ".txt", ".json")):
        return f"there is no {kind} file '{name}'"
    return f"unknown {kind} '{name}'{nearest(name, known)}"


def parse_choice(text: str, known: Sequence[_Word], what: str) -> _Word:
    """One of the ``known`` words; a usage error names the nearest one."""
    for word in known:
        if word == text:
            return word
    raise usage_error(f"{what}: unknown '{text}'{nearest(text, known)}")


def nearest(word: str, known: Sequence[str]) -> str:
    """`` (did you mean 'fast'?)`` where a known name is close, else the whole list of names."""
    close = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; known are: {', '.join(known)}"
