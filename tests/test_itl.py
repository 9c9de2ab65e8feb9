"""The three definitions of a gap, on stored times, and the recorder that follows them live."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detokbench.live.counting import Counters, Window
from detokbench.live.itl import (
    Arrival,
    TokenGap,
    chunk_gaps,
    filled_gaps,
    mean_itl_s,
    token_gaps,
    token_percentile,
)
from detokbench.live.quantiles import quantiles
from detokbench.live.recording import Recorder, StreamRecord
from detokbench.model.latency import percentile, sample_floor

PUBLIC_EXAMPLE = [Arrival(0.10, 1), Arrival(0.20, 4), Arrival(0.21, 0), Arrival(0.40, 3)]


def mean(values):
    return sum(values) / len(values)


def test_one_stream_three_figures():
    assert len(chunk_gaps(PUBLIC_EXAMPLE)) == 3
    assert mean(chunk_gaps(PUBLIC_EXAMPLE)) == pytest.approx(0.100)
    assert len(filled_gaps(PUBLIC_EXAMPLE)) == 2
    assert mean(filled_gaps(PUBLIC_EXAMPLE)) == pytest.approx(0.150)
    assert mean_itl_s(token_gaps(PUBLIC_EXAMPLE)) == pytest.approx(0.30 / 7)


@pytest.mark.parametrize("chunk", [1, 4, 10])
def test_itl_per_token_does_not_depend_on_the_tokens_a_chunk(chunk):
    """Tokens every 5 ms, sent when a chunk is full; late by what a busy client would be."""
    tokens = 400
    late_s = [0.0002 * (number * 7 % 5) for number in range(tokens // chunk)]
    arrivals = [
        Arrival(0.1 + 0.005 * chunk * number + late, chunk) for number, late in enumerate(late_s)
    ]
    assert mean_itl_s(token_gaps(arrivals)) == pytest.approx(0.005, rel=0.02)
    assert mean(chunk_gaps(arrivals)) == pytest.approx(0.005 * chunk, rel=0.02)


@pytest.mark.parametrize("arrivals", [[], [Arrival(0.1, 3)], [Arrival(0.1, 3), Arrival(0.2, 0)]])
def test_no_gap_no_itl(arrivals):
    assert token_gaps(arrivals) == []
    assert mean_itl_s(token_gaps(arrivals)) is None


def test_an_empty_chunk_in_front_has_no_part_in_the_itl():
    assert token_gaps([Arrival(0.0, 0), Arrival(1.0, 1), Arrival(1.5, 1)]) == [TokenGap(0.5, 1)]


@given(st.lists(st.tuples(st.floats(0, 1, allow_subnormal=False), st.integers(0, 5)), min_size=1))
def test_no_time_between_the_first_and_the_last_token_is_lost(steps):
    at = 0.0
    arrivals = []
    for gap, tokens in steps:
        at += gap
        arrivals.append(Arrival(at, tokens))
    filled = [arrival for arrival in arrivals if arrival.tokens]
    gaps = token_gaps(arrivals)
    assert sum(gap.tokens for gap in gaps) == sum(a.tokens for a in filled[1:])
    total = sum(gap.itl_s * gap.tokens for gap in gaps)
    assert total == pytest.approx(filled[-1].at_s - filled[0].at_s if filled else 0.0, abs=1e-9)


@given(
    st.integers(1, 10**12),
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 9)), max_size=300),
)
def test_chunk_by_chunk_gives_what_the_whole_stream_gives(at_ns, steps):
    """To the nanosecond: a recorder divides whole ones, and drops what is left over."""
    window, counters = Window(0.0, 1e6), Counters()
    window.see(0)
    recorder = Recorder(window, counters)
    record = StreamRecord(0, recorder)
    arrivals = []
    for gap_ns, ids in steps:
        at_ns += gap_ns
        record.take(at_ns, "", ids, at_ns, None)
        arrivals.append(Arrival(at_ns * 1e-9, ids))

    def to_a_ns(seconds):
        return None if seconds is None else pytest.approx(seconds, rel=0, abs=1.01e-9)

    gaps = token_gaps(arrivals)
    assert [value * 1e-9 for value, _ in recorder.gaps.values] == [
        to_a_ns(gap) for gap in chunk_gaps(arrivals)
    ]
    assert [value * 1e-9 for value, _ in recorder.itl.values] == [
        to_a_ns(gap.itl_s) for gap in gaps
    ]
    assert [weight for _, weight in recorder.itl.values] == [gap.tokens for gap in gaps]
    found = quantiles(recorder.itl.values)
    assert found.mean == to_a_ns(mean_itl_s(gaps))
    assert [found.p50, found.p90, found.p99] == [
        to_a_ns(token_percentile(gaps, percent)) for percent in (50, 90, 99)
    ]
    if gaps:
        whole_s = counters.gap_ns * 1e-9 / counters.gap_ids
        assert whole_s == pytest.approx(mean_itl_s(gaps), rel=1e-6, abs=1e-10)


def test_percentiles_only_above_their_sample_floor():
    assert [sample_floor(percent) for percent in (50, 90, 99)] == [4, 20, 200]
    values = [float(number) for number in range(1, 201)]
    assert percentile(values, 99) == 198.0
    assert percentile(values[:-1], 99) is None
    assert percentile(values[:20], 90) == 18.0
    assert percentile(values[:19], 90) is None
    assert percentile(values[:4], 50) == 2.0
    assert percentile(values[:3], 50) is None


def test_percentiles_of_tokens_count_tokens_and_their_floor_counts_gaps():
    gaps = [TokenGap(0.001, 9), TokenGap(0.002, 9), TokenGap(0.003, 1), TokenGap(0.5, 1)]
    assert token_percentile(gaps, 50) == 0.002
    assert token_percentile(gaps, 90) is None
    many = [TokenGap(0.010, 10)] * 19 + [TokenGap(1.0, 1)]
    assert token_percentile(many, 90) == 0.010
    assert token_percentile([TokenGap(0.010, 1)] * 17 + [TokenGap(1.0, 10)] * 3, 90) == 1.0
