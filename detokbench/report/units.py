"""Numbers for people: one unit a column, and no more digits than the spread allows."""

from __future__ import annotations

from math import floor, log10

US = 1e-6
_FEWEST_DIGITS = 2
_MOST_DIGITS = 3


def digits_for(value: float, low: float | None, high: float | None) -> int:
    """Significant digits of ``value`` that an interval supports: two or three.

    The last digit shown is of the size of half the interval; without one, two digits.
    """
    if low is None or high is None or value == 0:
        return _FEWEST_DIGITS
    half = (high - low) / 2
    if half <= 0:
        return _MOST_DIGITS
    digits = floor(log10(abs(value))) - floor(log10(half)) + 1
    return max(_FEWEST_DIGITS, min(_MOST_DIGITS, digits))


def significant(value: float, digits: int) -> str:
    """``value`` with so many significant digits, thousands separated, never in exponents."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded value
    decimals = digits - 1 - exponent
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def microseconds(seconds: float, low: float | None = None, high: float | None = None) -> str:
    """Seconds as a number of µs, with the digits that the interval supports."""
    return significant(seconds / US, digits_for(seconds, low, high))


def milliseconds(seconds: float, low: float | None = None, high: float | None = None) -> str:
    """Seconds as a number of ms: the digits the interval supports; three for a modelled value."""
    has_interval = low is not None and high is not None
    return significant(seconds / 1e-3, digits_for(seconds, low, high) if has_interval else 3)


def tera(rate_per_second: float) -> str:
    """A rate of a data sheet in units of 10^12, with its own digits: ``3.35``, ``1,979``."""
    return f"{rate_per_second / 1e12:,.4g}"


def data_size(size_bytes: float) -> str:
    """Bytes with a unit that fits, powers of ten, three digits: ``15.0 GB``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= size:
            return f"{significant(size_bytes / size, 3)} {unit}"
    return f"{size_bytes:.0f} B"


def share(ratio: float) -> str:
    """A ratio in whole per cent: ``92 %``."""
    return f"{100 * ratio:.0f} %"


def duration(seconds: float) -> str:
    """Seconds with a unit that fits, two digits: ``7.6 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{significant(seconds / size, 2)} {unit}"
    return f"{significant(seconds / 1e-9, 2)} ns"


def given(seconds: float) -> str:
    """A time that somebody gave, with all its digits: ``4.48 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9999999 * size:
            return f"{seconds / size:.10g} {unit}"
    return f"{seconds / 1e-9:.10g} ns"


def percent(share: float) -> str:
    """A share as a number of per cent: two digits, and no more than one place."""
    value = round(100 * share, 1)
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def rate(per_second: float) -> str:
    """``1.05 M`` or ``210 k`` things a second."""
    if per_second >= 1e6:
        return f"{significant(per_second / 1e6, 2)} M"
    return f"{significant(per_second / 1e3, 2)} k"


def times(ratio: float) -> str:
    """A ratio as ``1.2×``."""
    return f"{significant(ratio, 2)}×"


def count(number: int) -> str:
    """``8k`` for 8,192: counts as the command line writes them."""
    return f"{number // 1024}k" if number >= 1024 and number % 1024 == 0 else f"{number}"
