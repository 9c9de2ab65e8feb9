"""Calibration and visits, on subjects that keep their own time."""

import gc

from detokbench.bench.sampling import (
    MULTIPLES,
    Budget,
    Samples,
    quiet_gc,
    visit,
    warm_up_and_calibrate,
)
from detokbench.bench.subjects import Timing


class Clockwork:
    """A subject whose times follow a formula: 80 ns and so much a unit."""

    def __init__(self, ns_per_unit, units_per_n=1, limit=1 << 20):
        self.limit = limit
        self.asked = []
        self._ns_per_unit = ns_per_unit
        self._units_per_n = units_per_n

    def run(self, n):
        assert 1 <= n <= self.limit
        self.asked.append(n)
        units = n * self._units_per_n
        return Timing(round(80 + self._ns_per_unit * units), units)


NO_TIME = Budget(warmup_ns=0, visit_ns=0, visits=1)


def test_n_is_doubled_until_a_sample_is_a_thousand_clock_readings():
    subject = Clockwork(ns_per_unit=500)
    samples = warm_up_and_calibrate(subject, NO_TIME, floor_ns=40)
    assert 500 * samples.base >= 40_000 > 500 * samples.base / 2


def test_n_leaves_room_for_its_multiples():
    subject = Clockwork(ns_per_unit=1, limit=255)
    samples = warm_up_and_calibrate(subject, NO_TIME, floor_ns=40)
    visit(subject, samples, NO_TIME)
    assert max(subject.asked) <= 255
    assert sorted(samples.timings) == [samples.base * m for m in MULTIPLES]


def test_a_subject_of_one_repetition_is_still_measured():
    subject = Clockwork(ns_per_unit=1000, limit=1)
    samples = warm_up_and_calibrate(subject, NO_TIME, floor_ns=40)
    visit(subject, samples, NO_TIME)
    assert samples.line().slope == 1080


def test_the_slope_is_the_cost_of_a_unit_without_the_harness():
    subject = Clockwork(ns_per_unit=25, units_per_n=256)
    samples = warm_up_and_calibrate(subject, NO_TIME, floor_ns=40)
    visit(subject, samples, NO_TIME)
    line = samples.line()
    assert abs(line.slope - 25) < 0.01
    assert abs(line.intercept - 80) < 1


def test_points_keep_every_sample():
    samples = Samples(base=1)
    for ns in (10, 12, 900):
        samples.add(1, Timing(ns, 4))
    assert samples.points() == [(1, 4, [10, 12, 900])]


def test_the_collector_is_off_inside_and_as_it_was_outside():
    assert gc.isenabled()
    with quiet_gc(keep_on=False):
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_stays_on_when_asked():
    with quiet_gc(keep_on=True):
        assert gc.isenabled()
