"""SGLang's tail window, finish check, prefix check and regex bound: cases F2 to F4 and laws."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.stops.finish_check import Finish, FinishReason, StopCheck, find_finish
from detokbench.stops.prefix_check import ends_with_prefix, may_become_stop, suppresses_chunk
from detokbench.stops.regex_bound import regex_bound, sglang_regex_bound
from detokbench.stops.tail_window import TailWindow
from detokbench.vocab import Vocabulary, load_vocabulary

deterministic = settings(derandomize=True, deadline=None)


@pytest.fixture(scope="module")
def llama3() -> Vocabulary:
    return load_vocabulary("llama-3")


def encode_characters(text: str) -> list[int]:
    return [ord(char) for char in text]


def decode_characters(ids: list[int]) -> str:
    return "".join(map(chr, ids))


def character_check(*strings: str, regexes: tuple[str, ...] = ()) -> StopCheck:
    """A check over a vocabulary in which every character is a token."""
    window = TailWindow.for_stops(strings, regexes, encode_characters)
    return StopCheck(strings, regexes, window, decode_characters)


# Case F2: several ids a step put the stop in front of a window of the old size.


def test_f2_the_window_is_widened_by_the_accepted_ids(llama3: Vocabulary) -> None:
    ids = llama3.encode("ok STOP and then five more words here")
    window = TailWindow.for_stops(["STOP"], [], llama3.encode)
    assert len(ids) == 8
    assert window.base_tokens == 2
    assert llama3.decode(window.ids(ids)) == " words here"
    assert "STOP" in llama3.decode(window.ids(ids, accepted=8))


@pytest.mark.parametrize("accepted", [1, 2, 3, 4, 7, 8])
def test_f2_the_end_is_the_id_that_completed_the_stop(llama3: Vocabulary, accepted: int) -> None:
    ids = llama3.encode("ok STOP and then five more words here")
    window = TailWindow.for_stops(["STOP"], [], llama3.encode)
    check = StopCheck(("STOP",), (), window, llama3.decode)
    found = [
        finish
        for end in range(accepted, 9, accepted)
        if (finish := check.find(ids[:end], accepted)) is not None
    ]
    assert found[0] == Finish(FinishReason.STOP_STRING, "STOP", 2)
    assert llama3.decode(ids[:2]) == "ok STOP"


@pytest.mark.parametrize(("name", "tokens"), [("llama-3", 3), ("mistral-spm-fast", 5)])
def test_f2_the_window_counts_tokens_not_characters(name: str, tokens: int) -> None:
    vocabulary = load_vocabulary(name)
    window = TailWindow.for_stops(["🧬"], [], vocabulary.encode)
    assert window.base_tokens == tokens + 1
    ids = vocabulary.encode("a gene 🧬 here")
    check = StopCheck(("🧬",), (), window, vocabulary.decode)
    ends = [end for end in range(1, len(ids) + 1) if check.find(ids[:end]) is not None]
    assert vocabulary.decode(ids[: ends[0]]).endswith("🧬")


def test_a_stop_spelled_in_more_tokens_than_usual_is_missed(llama3: Vocabulary) -> None:
    """SGLang's behaviour: the window knows the canonical spelling only."""
    stop = "</answer>"
    window = TailWindow.for_stops([stop], [], llama3.encode)
    spelled = [token for char in stop for token in llama3.encode(char)]
    assert llama3.decode(spelled) == stop
    assert len(spelled) > window.base_tokens
    check = StopCheck((stop,), (), window, llama3.decode)
    assert all(check.find(spelled[:end]) is None for end in range(1, len(spelled) + 1))
    assert check.find(llama3.encode(f"42{stop}")) is not None


# Case F3: the length cap and a stop in one step.


def numbered_check(stop_id: int) -> StopCheck:
    return StopCheck(
        ("STOP",),
        (),
        TailWindow(2),
        lambda ids: "".join("STOP" if i == stop_id else "x" for i in ids),
    )


def test_f3_a_stop_among_the_accepted_ids_beats_the_cap() -> None:
    ids = [10, 11, 99, 20, 21, 22]
    found = find_finish(ids, 6, 5, numbered_check(99))
    assert found == Finish(FinishReason.STOP_STRING, "STOP", 3)


def test_f3_a_stop_past_the_cap_is_a_length() -> None:
    ids = [10, 11, 20, 21, 22, 99]
    assert find_finish(ids, 6, 5, numbered_check(99)) == Finish(FinishReason.LENGTH, None, 5)
    assert find_finish(ids, 6, 6, numbered_check(99)) == Finish(FinishReason.STOP_STRING, "STOP", 6)


def test_f3_stop_ids_follow_the_same_order() -> None:
    ids = [10, 11, 2, 20, 21, 22]
    assert find_finish(ids, 6, 5, numbered_check(99), {2}) == Finish(FinishReason.STOP_ID, 2, 3)
    assert find_finish(ids, 6, 2, numbered_check(99), {2}) == Finish(FinishReason.LENGTH, None, 2)
    # A stop string wins over a stop id of the same step even where the id came first.
    assert find_finish([2, 99], 2, 9, numbered_check(99), {2}) == Finish(
        FinishReason.STOP_STRING, "STOP", 2
    )


def test_nothing_fires_below_the_cap() -> None:
    assert find_finish([10, 11], 1, 3, numbered_check(99)) is None
    assert find_finish([10, 11, 12], 1, 3, numbered_check(99)) == Finish(
        FinishReason.LENGTH, None, 3
    )


def test_without_stops_nothing_is_decoded() -> None:
    def refuse(ids: list[int]) -> str:
        raise AssertionError(f"decoded {ids}")

    assert StopCheck((), (), TailWindow(1), refuse).find([1, 2, 3]) is None
    assert not suppresses_chunk([1, 2, 3], [], TailWindow(1), refuse)


def test_the_list_decides_between_stops_of_one_step() -> None:
    """SGLang's behaviour: vLLM takes the stop that completes first in the text."""
    ids = encode_characters("a END b FIN")
    assert character_check("FIN", "END").find(ids, len(ids)) == Finish(
        FinishReason.STOP_STRING, "FIN", 11
    )


@deterministic
@given(
    text=st.text("ab<>/", max_size=30),
    stop=st.text("ab<>/", min_size=1, max_size=6),
    accepted=st.integers(1, 9),
)
def test_one_stop_ends_at_the_same_id_for_every_number_of_ids(
    text: str, stop: str, accepted: int
) -> None:
    ids = encode_characters(text)
    check = character_check(stop)
    found = None
    for start in range(0, len(ids), accepted):
        end = min(start + accepted, len(ids))
        found = check.find(ids[:end], end - start)
        if found is not None:
            break
    position = text.find(stop)
    assert (found.length if found else None) == (position + len(stop) if position >= 0 else None)


def test_a_regex_that_ends_in_an_anchor_matches_within_a_step() -> None:
    check = character_check(regexes=(r"END$",))
    ids = encode_characters("the END of it")
    assert check.find(ids, len(ids)) == Finish(FinishReason.STOP_REGEX, r"END$", 7)
    assert check.find(ids, 1) is None


def test_a_regex_matches_at_the_last_id() -> None:
    check = character_check(regexes=(r"\d{3}", "[.]"))
    assert check.find(encode_characters("ab123")) == Finish(FinishReason.STOP_REGEX, r"\d{3}", 5)
    assert check.find(encode_characters("ab12.")) == Finish(FinishReason.STOP_REGEX, "[.]", 5)
    assert check.find(encode_characters("ab12")) is None


def test_an_anchor_takes_the_window_for_the_whole_output() -> None:
    """SGLang's behaviour: ``^`` matches at the left edge of the window, wherever that lies."""
    check = character_check(regexes=("^END",))
    assert check.find(encode_characters("the END")) is None
    assert check.find(encode_characters("the END ")) is not None


def test_a_regex_over_a_split_character_is_missed(llama3: Vocabulary) -> None:
    """SGLang's behaviour: the bound counts characters, the window tokens."""
    window = TailWindow.for_stops([], ["x.y"], llama3.encode)
    check = StopCheck((), ("x.y",), window, llama3.decode)
    ids = [token for char in "x🧬y" for token in llama3.encode(char)]
    assert (window.base_tokens, len(ids)) == (4, 5)
    assert check.find(ids) is None
    assert check.find(llama3.encode("xay")) is not None


# The prefix check.


@pytest.mark.parametrize(
    ("tail", "held"),
    [("so <", True), ("so </ans", True), ("</answer>", True), ("so <a", False), ("", False)],
)
def test_a_chunk_waits_while_a_stop_may_be_coming(tail: str, held: bool) -> None:
    assert may_become_stop(tail, ["</answer>"]) is held


def test_an_empty_stop_suppresses_nothing() -> None:
    assert not may_become_stop("text", [""])


@deterministic
@given(tail=st.text("ab<", max_size=12), stop=st.text("ab<", min_size=1, max_size=8))
def test_prefixes_against_their_definition(tail: str, stop: str) -> None:
    brute = any(stop.startswith(tail[start:]) for start in range(len(tail)))
    assert ends_with_prefix(tail, stop) is (brute or tail.endswith(stop))


@deterministic
@given(text=st.text("ab<", max_size=20), stop=st.text("ab<", min_size=2, max_size=6))
def test_no_beginning_of_a_stop_is_sent_before_the_match(text: str, stop: str) -> None:
    text = text.split(stop, maxsplit=1)[0] + stop
    ids = encode_characters(text)
    window = TailWindow.for_stops([stop], [], encode_characters)
    sent = 0
    for end in range(1, len(ids) + 1):
        if character_check(stop).find(ids[:end]) is not None:
            break
        if not suppresses_chunk(ids[:end], [stop], window, decode_characters):
            sent = end
    assert sent <= text.find(stop)


# Case F4: bounds of regexes.


@pytest.mark.parametrize(
    ("pattern", "bound", "in_sglang"),
    [
        ("[^,]", 1, None),
        (r"[^\n]", 1, None),
        ("a[^b]c", 3, None),
        ("abc", 3, 3),
        ("", 0, 0),
        (r"[.!?]\s", 2, 2),
        ("(foo|ab){2,3}.", 10, 10),
        (r"^END$", 3, 3),
        (r"\bno\b", 2, 2),
        ("[^,;]", 1, 1),
        ("a{2,5}?b", 6, 6),
        ("(a*){0}b", 1, 1),
        ("a*", None, None),
        ("(ab){1,}c", None, None),
        (r"\d+(?=x)", None, None),
        (r"(?P<q>['\"]).(?P=q)", 3, None),
        ("(?>ab)c{1,2}+", 4, None),
        ("(?<=cd)x(?!yz)", 5, None),
        ("(a)?(?(1)bc|d)", 3, None),
        ("(a)?(?(1)bc)", 3, None),
        ("a(?!)", 1, None),
    ],
)
def test_f4_regex_bounds(pattern: str, bound: int | None, in_sglang: int | None) -> None:
    assert regex_bound(pattern) == bound
    assert sglang_regex_bound(pattern) == in_sglang


def test_f4_an_unbounded_regex_makes_the_window_the_whole_output() -> None:
    engines = TailWindow.for_stops([], ["[^,]"], encode_characters)
    ours = TailWindow.for_stops([], ["[^,]"], encode_characters, bound=regex_bound)
    assert engines.length(5000) == 5000
    assert ours.length(5000) == 2


@deterministic
@given(
    st.recursive(
        st.sampled_from(["a", "[ab]", "[^a]", ".", r"\d", "^"]),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
            inner.map(lambda item: f"(?:{item}){{0,2}}"),
        ),
        max_leaves=8,
    ),
    st.text("ab1,", max_size=40),
)
def test_no_match_is_longer_than_the_bound(pattern: str, text: str) -> None:
    bound = regex_bound(pattern)
    assert bound is not None
    assert all(len(match[0]) <= bound for match in re.finditer(pattern, text))


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "(?P=missing)"])
def test_an_invalid_regex_is_a_usage_error(pattern: str) -> None:
    with pytest.raises(DetokbenchError) as caught:
        regex_bound(pattern)
    assert caught.value.exit_code is ExitCode.USAGE
