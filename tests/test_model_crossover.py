"""B*: the design notes' table, closed forms, measured points, and 'never' in all its forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detokbench.model.crossover import Answer, closed_form_batch, crossover
from detokbench.model.crossover_interval import crossover_interval, median_curve
from detokbench.model.curves import Line, Measured

deterministic = settings(derandomize=True, deadline=None)

# Llama-3-8B in bf16 on an H100 SXM, from the figures.
WEIGHTS_BYTES = (8_030_261_248 - 525_336_576) * 2
KV_BYTES_PER_TOKEN = 131_072
BYTES_PER_S = 3.35e12
FLOP_PER_S = 989e12
US = 1e-6
NEVER = math.inf


def memory_s(context: int) -> Line:
    kv_s = KV_BYTES_PER_TOKEN * context / BYTES_PER_S
    return Line(WEIGHTS_BYTES / BYTES_PER_S, kv_s)


def compute_s(context: int) -> Line:
    flop = 2 * 7.504924672e9 + 4 * context * 32 * 128 * 32
    return Line(0.0, flop / FLOP_PER_S)


def roofline_s(context: int):
    memory, compute = memory_s(context), compute_s(context)
    return lambda batch: max(memory(batch), compute(batch))


@pytest.mark.parametrize(
    ("cost_us", "table", "expected"),
    [
        (10, (NEVER,) * 5, ["never"] * 5),
        (20, (224, 298, NEVER, NEVER, NEVER), ["224", "299", "never", "never", "never"]),
        (27, (166, 204, 643, NEVER, NEVER), ["166", "204", "643", "never", "never"]),
        (37, (121, 140, 264, NEVER, NEVER), ["121", "140", "264", "never", "never"]),
        (60, (75, 81, 112, 224, NEVER), ["75", "81", "112", "225", "never"]),
        (150, (30, 31, 34, 41, NEVER), ["30", "31", "34", "41", "never"]),
    ],
)
def test_the_table_of_the_design_notes(
    cost_us: int, table: tuple[float, ...], expected: list[str]
) -> None:
    """The notes round 298.87 and 224.76 down and all their other cells to the nearest."""
    host = Line(0.0, cost_us * US)
    found = [crossover(host, roofline_s(context)) for context in (0, 128, 512, 1024, 4096)]
    assert [crossing.text for crossing in found] == expected
    for crossing, published in zip(found, table, strict=True):
        assert crossing.order_batch == published or abs(crossing.order_batch - published) < 1


def test_a_given_step_time_crosses_where_the_chapter_says() -> None:
    assert crossover(Line(0.0, 10 * US), Line(4.48e-3, 0.0)).text == "448"
    assert crossover(Line(0.0, 20 * US), Line(4.48e-3, 0.0)).text == "224"
    assert round(closed_form_batch(0.0, 10 * US, 4.48e-3)) == 448


def test_the_memory_term_alone() -> None:
    assert crossover(Line(0.0, 10 * US), memory_s(0)).text == "448"
    assert crossover(Line(0.0, 10 * US), memory_s(128)).batch == pytest.approx(897.57, abs=0.01)
    assert crossover(Line(0.0, 5 * US), memory_s(0)).text == "896"


def test_never_says_which_slopes() -> None:
    found = crossover(Line(0.0, 10 * US), roofline_s(0))
    assert found.answer is Answer.NEVER
    assert found.batch is None
    assert "10 µs on the host and 15.2 µs on the GPU" in found.reason


def test_a_host_that_is_late_for_a_while_only() -> None:
    # Flat at 4.48 ms until compute takes over at 295, then steeper than the host.
    host = Line(3e-3, 6 * US)
    t_step = roofline_s(0)
    found = crossover(host, t_step)
    assert found.answer is Answer.CROSSES
    assert found.batch == pytest.approx((t_step(1) - 3e-3) / (6 * US))
    assert host(330) < t_step(330)


def test_a_late_stretch_too_narrow_for_any_grid() -> None:
    t_step = roofline_s(0)
    kink = memory_s(0)(1) / compute_s(0).per_sequence_s
    host = Line(t_step(kink) - 5 * US * kink + 1e-9, 5 * US)
    found = crossover(host, t_step)
    assert found.batch == pytest.approx(kink, rel=1e-3)
    assert crossover(Line(host.fixed_s - 2e-9, 5 * US), t_step).answer is Answer.NEVER


def test_late_from_the_first_sequence() -> None:
    found = crossover(Line(5e-3, 0.0), Line(4.48e-3, 0.0))
    assert (found.answer, found.batch, found.text) == (Answer.ALWAYS_LATE, 1.0, "always late")
    assert "5 ms on the host, 4.48 ms on the GPU" in found.reason


def test_a_crossing_that_memory_does_not_hold() -> None:
    found = crossover(Line(0.0, 60 * US), roofline_s(1024), largest_batch=200)
    assert found.answer is Answer.DOES_NOT_FIT
    assert found.batch == pytest.approx(224.76, abs=0.01)
    assert found.text == "does not fit in memory"
    assert crossover(Line(0.0, 60 * US), roofline_s(1024), largest_batch=300).text == "225"


def test_equal_slopes_never_cross() -> None:
    assert crossover(Line(1e-3, 15 * US), Line(2e-3, 15 * US)).answer is Answer.NEVER
    assert crossover(Line(1e-3, 0.0), Line(1e-3, 0.0)).answer is Answer.NEVER


def test_a_crossing_far_beyond_any_batch_is_still_found() -> None:
    found = crossover(Line(0.0, 1e-12), Line(4.48e-3, 0.0))
    assert found.batch == pytest.approx(4.48e9)


@deterministic
@given(fixed_us=st.floats(0, 4000), slope_us=st.floats(0.1, 100), t_step_ms=st.floats(4.1, 100))
def test_the_search_agrees_with_the_closed_form(
    fixed_us: float, slope_us: float, t_step_ms: float
) -> None:
    expected = closed_form_batch(fixed_us * US, slope_us * US, t_step_ms * 1e-3)
    found = crossover(Line(fixed_us * US, slope_us * US), Line(t_step_ms * 1e-3, 0.0))
    assert found.order_batch == pytest.approx(max(expected, 1.0), rel=1e-6)


def test_closed_form_without_a_slope() -> None:
    assert closed_form_batch(1e-3, 0.0, 2e-3) == math.inf
    assert closed_form_batch(3e-3, 0.0, 2e-3) == 0.0


lines = st.builds(Line, st.floats(0, 5e-3), st.floats(0, 50e-6))
measured_hosts = st.lists(st.floats(1e-5, 2e-2), min_size=4, max_size=4).map(
    lambda seconds: Measured((1, 8, 64, 512), tuple(seconds))
)


@deterministic
@given(host=st.one_of(lines, measured_hosts), parts=st.lists(lines, min_size=1, max_size=3))
def test_on_time_below_the_crossing_and_late_just_above(host, parts: list[Line]) -> None:
    def t_step_s(batch: float) -> float:
        return max(part(batch) for part in parts)

    found = crossover(host, t_step_s)
    last_on_time = min(found.order_batch, 2000)
    for batch in range(1, int(last_on_time)):
        assert host(batch) <= t_step_s(batch) * (1 + 1e-6)
    if found.batch is not None and found.batch < 1e9:
        above = found.batch * (1 + 1e-6)
        assert host(above) >= t_step_s(above) * (1 - 1e-6)


def test_measured_points_cross_between_or_beyond() -> None:
    host = Measured((1, 128, 256, 512), (0.01e-3, 1.28e-3, 2.56e-3, 5.12e-3))
    assert crossover(host, Line(4.48e-3, 0.0)).text == "448"
    beyond = crossover(host, Line(8.97e-3, 0.0))
    assert beyond.answer is Answer.EXTRAPOLATED
    assert beyond.text == "beyond 512, by extrapolation 897"


def test_the_first_of_several_crossings_counts() -> None:
    host = Measured((1, 10, 20, 40), (1e-3, 5e-3, 1e-3, 9e-3))
    found = crossover(host, Line(3e-3, 0.0))
    assert found.batch == pytest.approx(5.5)


def test_a_measured_step_time_bends_as_it_likes() -> None:
    t_step = Measured((1, 100, 200, 400), (4e-3, 8e-3, 4e-3, 16e-3))
    found = crossover(Line(0.0, 25 * US), t_step)
    assert 100 < found.order_batch < 200
    assert crossover(Line(0.0, 35 * US), t_step, largest_batch=50).answer is Answer.DOES_NOT_FIT


def test_measured_curves_refuse_what_is_no_curve() -> None:
    with pytest.raises(ValueError, match="two points"):
        Measured((1,), (1.0,))
    with pytest.raises(ValueError, match="must rise"):
        Measured((2, 1), (1.0, 2.0))


def test_extrapolation_is_not_led_by_two_close_points() -> None:
    host = Measured((1, 256, 504, 512), (0.0, 2.56e-3, 5.04e-3, 5.00e-3))
    assert host(1024) == pytest.approx(5.00e-3 + 512 * (5.00e-3 - 2.56e-3) / 256)
    assert host(0) == pytest.approx(-2.56e-3 / 255)


def process(cost_us: float) -> dict[int, float]:
    return {batch: batch * cost_us * US for batch in (1, 64, 512)}


def test_the_interval_is_seeded_and_holds_the_point() -> None:
    samples = [process(cost) for cost in (18, 19, 20, 21, 22)]
    t_step = Line(4.48e-3, 0.0)
    first = crossover_interval(samples, t_step, seed=7)
    assert first == crossover_interval(samples, t_step, seed=7)
    assert first.point.text == "224"
    assert 203 <= first.low_batch <= 224 <= first.high_batch <= 249
    assert first.never_share == 0


def test_an_interval_that_reaches_never() -> None:
    samples = [process(cost) for cost in (14.0, 16.5, 17.0)]
    found = crossover_interval(samples, roofline_s(0))
    assert found.point.answer is Answer.CROSSES
    assert found.high_batch == math.inf
    assert 0 < found.never_share < 1


def test_one_process_has_no_spread() -> None:
    found = crossover_interval([process(20)], Line(4.48e-3, 0.0), resamples=10)
    assert found.low_batch == found.high_batch == found.point.batch


def test_processes_may_have_measured_different_batches() -> None:
    curve = median_curve([{1: 1.0, 8: 2.0}, {1: 3.0}, {8: 4.0, 64: 5.0}])
    assert curve == Measured((1, 8, 64), (2.0, 3.0, 5.0))
