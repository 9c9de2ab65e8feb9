import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streaming import assert_error

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.grammar import (
    nearest,
    parse_choice,
    parse_count,
    parse_count_list,
    parse_duration_s,
)

LARGEST = 1 << 24


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4.48ms", 4.48e-3),
        ("10us", 10e-6),
        ("10 µs", 10e-6),
        ("10μs", 10e-6),
        ("20ns", 20e-9),
        (" 1.5s ", 1.5),
        ("2e3us", 2e-3),
    ],
)
def test_duration_with_each_unit(text, seconds):
    assert parse_duration_s(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("text", ["10", "ms", "", "-1ms", "1,5ms", "10 m", "1ms 2us", "infs"])
def test_what_is_no_duration_is_a_usage_error(text):
    with pytest.raises(DetokbenchError) as caught:
        parse_duration_s(text, "--t-step")
    assert_error(caught, ExitCode.USAGE, "--t-step", f"'{text}'", "4.48ms")


@pytest.mark.parametrize("text", ["0ms", "0.000s", "1e-400s", "86401s", "1e300s", "1e999s"])
def test_duration_of_nothing_or_of_forever_is_refused(text):
    with pytest.raises(DetokbenchError) as caught:
        parse_duration_s(text, "--t-step")
    assert_error(caught, ExitCode.USAGE, "--t-step", text, "longer than zero")


@pytest.mark.parametrize(
    ("text", "count"),
    [("1", 1), ("8k", 8192), ("8K", 8192), (" 32 ", 32), (str(LARGEST), LARGEST)],
)
def test_count(text, count):
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "k", "1.5", "-1", "1m", "0x10", "1 2"])
def test_what_is_no_count_is_a_usage_error(text):
    with pytest.raises(DetokbenchError) as caught:
        parse_count(text, "--prompt-len")
    assert_error(caught, ExitCode.USAGE, "--prompt-len", f"'{text}'", "1,024")


@pytest.mark.parametrize("text", ["0", "0k", str(LARGEST + 1), "16385k"])
def test_count_out_of_bounds_names_the_bounds(text):
    with pytest.raises(DetokbenchError) as caught:
        parse_count(text, "--batch")
    assert_error(caught, ExitCode.USAGE, "--batch", f"'{text}'", "16,777,216")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("32", [32]),
        ("1,32,256", [1, 32, 256]),
        ("1..512", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
        ("3..20", [3, 4, 8, 16, 20]),
        ("64..512:64", [64, 128, 192, 256, 320, 384, 448, 512]),
        ("1..10:4", [1, 5, 9, 10]),
        ("7..7", [7]),
        ("7..7:2", [7]),
        ("1..8,64..256:64", [1, 2, 4, 8, 64, 128, 192, 256]),
        ("256,1,256, 1..2", [256, 1, 2]),
        ("1k..2k:512", [1024, 1536, 2048]),
    ],
)
def test_list_of_counts(text, counts):
    assert parse_count_list(text) == counts


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty part"),
        ("1,,2", "empty part"),
        ("8..1", "write 1..8"),
        ("1..", "lacks an end"),
        ("..8", "lacks an end"),
        ("1..8:0", "'0'"),
        ("1..8:", "''"),
        ("1..2..3", "'2..3'"),
        ("1;2", "'1;2'"),
    ],
)
def test_bad_list_is_a_usage_error(text, says):
    with pytest.raises(DetokbenchError) as caught:
        parse_count_list(text, "--batch")
    assert_error(caught, ExitCode.USAGE, "--batch", says)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("0,1k,4k", [0, 1024, 4096]),
        ("0", [0]),
        ("0k", [0]),
        ("0..8", [0, 1, 2, 4, 8]),
        ("0..8:4", [0, 4, 8]),
    ],
)
def test_a_list_that_may_hold_zero(text, counts):
    assert parse_count_list(text, least=0) == counts


@pytest.mark.parametrize("text", ["-1", "16385k", "0..8:0", ""])
def test_a_list_that_may_hold_zero_refuses_the_rest_all_the_same(text):
    with pytest.raises(DetokbenchError) as caught:
        parse_count_list(text, "--context", least=0)
    assert_error(caught, ExitCode.USAGE, "--context")


def test_zero_is_refused_where_nothing_else_is_said():
    with pytest.raises(DetokbenchError) as caught:
        parse_count_list("0", "--batch")
    assert_error(caught, ExitCode.USAGE, "--batch", "between 1 and")
    assert parse_count("0", least=0) == 0


def test_a_choice_is_one_of_the_known_words():
    assert parse_choice("fp8", ("bf16", "fp8"), "--kv") == "fp8"
    with pytest.raises(DetokbenchError) as caught:
        parse_choice("fp16", ("bf16", "fp8"), "--kv")
    assert_error(caught, ExitCode.USAGE, "--kv", "'fp16'", "did you mean 'bf16'?")


def test_nearest_names_a_close_word_or_all_of_them():
    assert "'fast'" in nearest("fsat", ["slow", "fast"])
    assert "slow, fast" in nearest("zzz", ["slow", "fast"])


@given(st.lists(st.integers(1, LARGEST), min_size=1, unique=True))
def test_list_of_counts_round_trip(counts):
    assert parse_count_list(",".join(map(str, counts))) == counts


@given(st.integers(1, LARGEST), st.integers(1, LARGEST))
def test_powers_run_from_end_to_end_and_double_between(a, b):
    first, last = sorted((a, b))
    counts = parse_count_list(f"{first}..{last}")
    assert (counts[0], counts[-1]) == (first, last)
    assert counts == sorted(set(counts))
    assert all(count.bit_count() == 1 for count in counts[1:-1])
    assert all(after <= 2 * before for before, after in pairwise(counts))


@given(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 700))
def test_steps_are_even_and_keep_both_ends(first, length, step):
    counts = parse_count_list(f"{first}..{first + length}:{step}")
    assert (counts[0], counts[-1]) == (first, first + length)
    gaps = [after - before for before, after in pairwise(counts)]
    assert all(gap == step for gap in gaps[:-1])
    assert all(0 < gap <= step for gap in gaps)


@given(
    st.floats(1e-6, 86_400, allow_nan=False),
    st.sampled_from([("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]),
)
def test_duration_round_trip(number, unit):
    name, scale = unit
    assert math.isclose(parse_duration_s(f"{number!r}{name}"), number * scale, rel_tol=1e-12)
