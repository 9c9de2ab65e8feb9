"""Statistics over processes, on stored samples and without a clock."""

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detokbench.bench.statistics import (
    bootstrap_interval,
    median_absolute_deviation,
    paired_ratios,
    summarize,
)

# Seconds a token of ``fast`` in six processes of one run; the last was disturbed.
STORED = [9.49e-7, 9.53e-7, 9.51e-7, 9.62e-7, 9.47e-7, 13.1e-7]

values_of_processes = st.lists(st.floats(1e-9, 1e-3), min_size=5, max_size=20)


def test_median_and_spread_ignore_one_disturbed_process():
    summary = summarize(STORED)
    assert summary.median == pytest.approx(9.52e-7)
    assert summary.mad == pytest.approx(0.04e-7, rel=1e-6)


def test_interval_shows_the_disturbed_process():
    low, high = bootstrap_interval(STORED)
    assert low == pytest.approx(9.48e-7, rel=2e-3)
    assert high > 9.62e-7


def test_under_five_processes_there_is_no_interval():
    assert bootstrap_interval([1.0, 2.0, 3.0, 4.0]) == (None, None)
    assert summarize([1.0]).ci_low is None


def test_no_values_are_refused():
    with pytest.raises(ValueError, match="no values"):
        summarize([])


def test_mad_is_the_median_distance():
    assert median_absolute_deviation([1, 2, 4, 8, 100]) == 3


@given(values_of_processes)
def test_interval_holds_the_median_and_lies_within_the_values(values):
    low, high = bootstrap_interval(values)
    assert min(values) <= low <= median(values) <= high <= max(values)


@given(values_of_processes)
def test_the_same_values_give_the_same_interval(values):
    assert bootstrap_interval(values) == bootstrap_interval(list(values))


@given(values_of_processes, st.floats(0.5, 2.0))
def test_intervals_scale_with_the_unit(values, factor):
    low, high = bootstrap_interval(values)
    scaled_low, scaled_high = bootstrap_interval([value * factor for value in values])
    assert scaled_low == pytest.approx(low * factor)
    assert scaled_high == pytest.approx(high * factor)


@pytest.mark.parametrize("processes", [5, 6, 20])
def test_the_interval_covers_the_true_median_as_often_as_it_says(processes):
    rng = random.Random(7)
    covered = 0
    for _ in range(300):
        low, high = bootstrap_interval([rng.gauss(1.0, 0.02) for _ in range(processes)])
        covered += low <= 1.0 <= high
    assert 0.92 * 300 <= covered <= 300


def test_ratios_are_taken_within_each_process():
    slowed = [1.0, 1.0, 3.0]
    assert paired_ratios([2.0, 2.0, 6.0], slowed) == [2.0, 2.0, 2.0]


def test_ratios_leave_out_what_is_missing():
    assert paired_ratios([2.0, None, 3.0], [1.0, 1.0, None]) == [2.0]
    assert paired_ratios([2.0], [0.0]) == []


@pytest.mark.parametrize("size", [513, 2001])
def test_an_interval_over_very_many_values_is_what_resampling_gives(size, monkeypatch):
    values = [float(number) for number in range(size)]
    ranks = bootstrap_interval(values)
    monkeypatch.setattr("detokbench.bench.statistics._MOST_RESAMPLED", size)
    for quick, resampled in zip(ranks, bootstrap_interval(values), strict=True):
        assert quick == pytest.approx(resampled, abs=0.01 * size)
