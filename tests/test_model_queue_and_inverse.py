"""Queues below and above capacity, shared and divided front ends, and the model read backwards."""

from __future__ import annotations

import pytest

from detokbench.model.crossover import crossover
from detokbench.model.curves import Line
from detokbench.model.inverse import explain_added, explain_overlapped
from detokbench.model.queue import (
    front_ends_needed,
    merged_chunks_per_step,
    queue_state,
    shared_by_engines,
)


def test_below_capacity_only_a_delay() -> None:
    state = queue_state(128, host_s=2e-3, t_step_s=5e-3)
    assert state.added_delay_s == 2e-3
    assert state.utilisation == pytest.approx(0.4)
    assert state.backlog_ids_per_s == 0
    assert state.lag_s_per_s == 0
    assert state.itl_s == 5e-3


def test_above_capacity_the_queue_grows() -> None:
    state = queue_state(100, host_s=8e-3, t_step_s=5e-3)
    assert state.backlog_ids_per_s == pytest.approx(20_000 - 12_500)
    assert state.lag_s_per_s == pytest.approx(0.375)
    assert state.itl_s == 8e-3


def test_the_growth_is_that_of_a_queue_played_through() -> None:
    host_s, t_step_s, batch, seconds = 6e-3, 5e-3, 64, 30.0
    emitted = int(seconds / t_step_s) * batch
    done = int(seconds / host_s) * batch
    state = queue_state(batch, host_s, t_step_s)
    assert state.backlog_ids_per_s * seconds == pytest.approx(emitted - done, rel=0.01)


def test_several_ids_a_step() -> None:
    state = queue_state(64, host_s=2e-3, t_step_s=5e-3, ids_per_step=4)
    assert state.itl_s == pytest.approx(1.25e-3)


def test_merging_front_ends_send_fewer_chunks_before_they_lag() -> None:
    assert merged_chunks_per_step(128, 0.5e-3, 20e-6, 5e-3) == 1.0
    assert merged_chunks_per_step(128, 0.5e-3, 60e-6, 5e-3) == pytest.approx(4.5e-3 / 7.68e-3)
    assert merged_chunks_per_step(128, 6e-3, 20e-6, 5e-3) is None
    assert merged_chunks_per_step(128, 1e-3, 0.0, 5e-3) == 1.0


def test_front_ends_needed() -> None:
    host = Line(1e-3, 20e-6)
    assert front_ends_needed(host, 100, 4.48e-3) == 1
    assert front_ends_needed(host, 256, 4.48e-3) == 2  # 174 a process
    assert front_ends_needed(host, 512, 4.48e-3) == 3
    assert front_ends_needed(host, 512, 1e-3) is None
    assert front_ends_needed(Line(1e-3, 1e-3), 3, 2e-3) == 3


def test_engines_behind_one_front_end_divide_the_crossover() -> None:
    t_step = Line(4.48e-3, 0.0)
    shared = shared_by_engines(Line(0.0, 10e-6), 4)
    assert crossover(shared, t_step).text == "112"


def test_added_detokenisation_explains_the_difference() -> None:
    found = explain_added(7.04e-3, 4.48e-3, 256)
    assert found.c_s == pytest.approx(10e-6)
    assert found.crossover_batch == pytest.approx(448)
    assert not found.is_bound
    with pytest.raises(ValueError, match="does not grow"):
        explain_added(4.48e-3, 4.48e-3, 256)


def test_overlapped_detokenisation_explains_the_whole() -> None:
    found = explain_overlapped(5.12e-3, 4.48e-3, 256)
    assert found.c_s == pytest.approx(20e-6)
    assert found.crossover_batch == pytest.approx(224)


def test_equal_itls_give_a_bound_only() -> None:
    found = explain_overlapped(4.48e-3, 4.48e-3, 256)
    assert found.is_bound
    assert found.c_s == pytest.approx(17.5e-6)
    assert found.crossover_batch == 256
