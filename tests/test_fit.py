"""The line through per-N medians, on numbers known beforehand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detokbench.bench.fit import fit_line, slope_through_medians


def test_slope_is_the_cost_and_intercept_the_harness():
    points = [(n, [80 + 500 * n]) for n in (64, 128, 192, 256)]
    line = slope_through_medians(points)
    assert line.slope == pytest.approx(500)
    assert line.intercept == pytest.approx(80)


def test_a_disturbed_sample_moves_neither():
    clean = [(n, [80 + 500 * n] * 5) for n in (1, 2, 3, 4)]
    disturbed = [(n, [*times[:4], times[4] * 50]) for n, times in clean]
    assert slope_through_medians(disturbed) == slope_through_medians(clean)


def test_one_x_gives_no_line():
    with pytest.raises(ValueError, match="two different x"):
        fit_line([3, 3], [1, 2])


def test_lengths_must_match():
    with pytest.raises(ValueError, match="two different x"):
        fit_line([1, 2, 3], [1, 2])


@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.lists(st.integers(1, 10_000), min_size=2, max_size=8, unique=True),
)
def test_points_on_a_line_give_that_line(slope, intercept, xs):
    line = fit_line(xs, [intercept + slope * x for x in xs])
    size = max(abs(slope), abs(intercept), 1.0)
    assert line.slope == pytest.approx(slope, abs=1e-6 * size)
    assert line.intercept == pytest.approx(intercept, abs=1e-6 * size * max(xs))
