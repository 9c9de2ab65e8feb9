"""Our matcher against ``str.find``, for every cut of the text; nothing leaks, nothing is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
import streaming
from hypothesis import given, settings
from hypothesis import strategies as st

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.stops.matcher import MatchState, StopMatch, StopMatcher

# Letters for overlaps, and characters of two, three and four bytes and of no width of their own.
ALPHABET = "ab<é\u0301歪🧬\n\ufffd"

letters = st.sampled_from(["ab", "ab<", ALPHABET])


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, list[str], list[int], int]:
    """A text, stops of which some lie in it or inside each other, where to cut it, an offset."""
    alphabet = draw(letters)
    text = draw(st.text(alphabet, max_size=30))
    place = st.integers(0, len(text))
    stops = draw(st.lists(st.text(alphabet, min_size=1, max_size=5), max_size=4))
    begin, length = draw(place), draw(st.integers(1, 8))
    stops.insert(draw(st.integers(0, len(stops))), text[begin : begin + length] or "a")
    cuts = sorted(draw(st.lists(place, max_size=8)))
    return text, stops, cuts, draw(place) if draw(st.booleans()) else 0


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *cuts, len(text)]
    return [text[begin:end] for begin, end in pairwise(edges)]


def brute_force(text: str, stops: list[str], from_offset: int) -> StopMatch | None:
    """The earliest end after the offset; ``str.find`` from the first place that can have one."""
    best: StopMatch | None = None
    for stop in stops:
        begin = text.find(stop, max(from_offset - len(stop) + 1, 0))
        if begin >= 0 and (best is None or begin + len(stop) < best.end):
            best = StopMatch(stop, begin, begin + len(stop))
    return best


def longest_open(fed: str, stops: list[str]) -> str:
    """The longest proper beginning of a stop at the end of ``fed``."""
    tails = (fed[begin:] for begin in range(len(fed) + 1))
    return next(t for t in tails if any(len(t) < len(s) and s.startswith(t) for s in stops))


@settings(max_examples=10_000, deadline=None, derandomize=True)
@given(streams())
def test_the_matcher_finds_what_str_find_finds(
    stream: tuple[str, list[str], list[int], int],
) -> None:
    text, stops, cuts, from_offset = stream
    expected = brute_force(text, stops, from_offset)
    state = StopMatcher(stops).open(from_offset)
    fed = released = ""
    for piece in pieces_of(text, cuts):
        released += state.feed(piece)
        fed += piece
        if expected is not None and len(fed) >= expected.end:
            break
        assert state.match is None
        assert state.held == longest_open(fed, stops)
        assert released + state.held == fed
    assert state.match == expected
    released += state.feed("more") if expected is not None else state.end()
    assert released == (text if expected is None else text[: expected.begin])
    assert state.held == ""
    assert state.steps <= 2 * len(text)


def feed_all(state: MatchState, text: str, size: int) -> str:
    return "".join(state.feed(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 3, 1000, 100_000])
def test_work_grows_with_the_text_and_not_with_the_stop(size: int) -> None:
    """The worst case for failure links: almost the stop, again and again."""
    stop = "a" * 10_000 + "b"
    state = StopMatcher([stop]).open()
    text = ("a" * 9_999 + "c") * 5
    assert feed_all(state, text, size) == text
    assert state.steps <= 2 * len(text)


def test_text_in_which_no_stop_begins_costs_no_step() -> None:
    state = StopMatcher(["</answer>", "\n\nUser:"]).open()
    text = "the quick brown fox " * 100
    assert feed_all(state, text, 4) == text
    assert state.steps == 0


def test_a_thousand_stops_and_stops_of_ten_thousand_characters() -> None:
    stops = [f"<stop {number}>" for number in range(1000)]
    long = ["x" * 10_000 + "y", "x" * 9_999 + "🧬"]
    matcher = StopMatcher([*stops, *long])
    # A state for each character that no earlier stop spells, and the root.
    shared = len({stop[:end] for stop in [*stops, *long] for end in range(1, len(stop) + 1)})
    assert len(matcher.automaton.next_char) == 1 + shared
    state = matcher.open()
    assert feed_all(state, "a <stop 99 <stop 999> b", 1) == "a <stop 99 "
    assert state.match == StopMatch("<stop 999>", 11, 21)
    state = matcher.open()
    assert feed_all(state, "x" * 20_000 + "🧬", 7) == "x" * 10_001
    assert state.match == StopMatch(long[1], 10_001, 20_001)


@pytest.mark.parametrize(
    ("stops", "text", "match"),
    [
        (["re", "he"], "over there now", StopMatch("he", 6, 8)),
        (["b", "ab"], "ab", StopMatch("b", 1, 2)),
        (["ab", "b"], "ab", StopMatch("ab", 0, 2)),
        (["ab", "ab"], "ab", StopMatch("ab", 0, 2)),
        (["abcd", "bc"], "abcd", StopMatch("bc", 1, 3)),
        (["aab"], "aaab", StopMatch("aab", 1, 4)),
    ],
)
def test_earliest_end_first_then_the_list(stops: list[str], text: str, match: StopMatch) -> None:
    state = StopMatcher(stops).open()
    assert feed_all(state, text, 1) == text[: match.begin]
    assert state.match == match


def test_a_match_that_is_passed_over_may_begin_the_next() -> None:
    state = StopMatcher(["aa"]).open(from_offset=2)
    assert state.feed("aa") == "a"
    assert state.held == "a"
    assert state.feed("a") == ""
    assert state.match == StopMatch("aa", 1, 3)


def test_the_offset_may_be_raised() -> None:
    state = StopMatcher(["\n"]).open()
    state.from_offset = 1
    assert state.feed("\n") == "\n"
    state.from_offset = 3
    assert state.feed("a\n") == "a\n"
    assert state.feed("b\n") == "b"
    assert state.match == StopMatch("\n", 4, 5)


def test_without_stops_everything_goes_through() -> None:
    state = StopMatcher([]).open()
    assert state.feed("text") == "text"
    assert (state.end(), state.match) == ("", None)


def test_an_empty_stop_is_refused() -> None:
    with pytest.raises(DetokbenchError) as caught:
        StopMatcher(["a", ""])
    streaming.assert_error(caught, ExitCode.USAGE, "empty stop string")
