"""From made-up host costs to answers that can be worked out by hand."""

import pytest

from detokbench.model.crossover import Answer
from detokbench.model.host import amortised_decode_s, fit_amortised, sglang_parts, vllm_parts
from detokbench.model.sweep import (
    NOTHING_SENT,
    PathCost,
    RequestCost,
    busiest_samples,
    find_crossover,
    interval_that_keeps_up,
    processes_needed,
)

BATCHES = (1, 64, 512)
US = 1e-6


def linear(per_sequence_s):
    return {batch: batch * per_sequence_s for batch in BATCHES}


FAST = PathCost("fast", None, "vllm", {1: [linear(1 * US)] * 3})
BATCHED = PathCost(
    "batch-decode", None, "sglang", {k: [linear((4 / k + 1) * US)] * 3 for k in (1, 2, 4)}
)
SENDING = RequestCost(chunk_s=[9 * US] * 3)


def constant(_batch):
    return 4.48e-3


def test_vllm_decodes_each_step_and_sends_once_an_interval():
    assert vllm_parts(100, 100 * US, 9 * US, interval=4).busiest_s == pytest.approx(325 * US)


def test_sglang_works_in_two_processes_and_the_slower_one_counts():
    parts = sglang_parts(100, 500 * US, 9 * US)
    assert (parts.detokenizer_s, parts.front_end_s) == pytest.approx((500 * US, 900 * US))
    assert parts.busiest_s == pytest.approx(900 * US)


def test_stop_checks_load_the_scheduler_alone():
    parts = sglang_parts(256, 1e-3, 1 * US, stops_s=11 * US)
    assert parts.scheduler_s == pytest.approx(2.816e-3)
    assert parts.busiest_s == parts.scheduler_s


def test_decoding_only_crosses_where_decoding_does():
    found = find_crossover(FAST, NOTHING_SENT, constant)
    assert found.point.answer is Answer.EXTRAPOLATED
    assert found.point.batch == pytest.approx(4480)


def test_chunks_bring_the_crossing_nearer_and_an_interval_takes_it_back():
    assert find_crossover(FAST, SENDING, constant).point.batch == pytest.approx(448)
    assert find_crossover(FAST, SENDING, constant, interval=9).point.batch == pytest.approx(2240)


def test_engines_behind_one_front_end_divide_the_crossing():
    assert find_crossover(FAST, SENDING, constant, engines=2).point.batch == pytest.approx(224)


def test_several_ids_a_step_need_fewer_chunks_an_id():
    per_step = busiest_samples(FAST, SENDING, interval=4, ids_per_step=2)[0]
    assert per_step[64] == pytest.approx(64 * 1 * US + 64 * 9 * US / 2)


def test_the_smallest_interval_that_keeps_up():
    # At 512: 0.51 ms of decoding, and 4.6 ms of chunks at k = 1.
    assert interval_that_keeps_up(FAST, lambda _: SENDING, 512, 3e-3, [1, 2, 4]) == 2
    assert interval_that_keeps_up(FAST, lambda _: SENDING, 512, 0.4e-3, [1, 2, 4]) is None


def test_front_ends_share_the_batch():
    assert processes_needed(FAST, SENDING, 512, 4.48e-3) == 2
    assert processes_needed(FAST, SENDING, 512, 4.48e-3, engines=2) == 3
    assert processes_needed(FAST, SENDING, 512, 1 * US) is None


def test_log_probabilities_cost_every_step_whatever_the_interval():
    request = RequestCost(chunk_s=[0.001 * US] * 3, extra_s=[12 * US] * 3)
    steps = busiest_samples(FAST, request, interval=16)[0]
    assert steps[64] == pytest.approx(64 * 13 * US, rel=1e-3)


def test_the_amortised_cost_is_found_again():
    costs = {k: amortised_decode_s(4 * US, 1 * US, k) for k in (1, 4, 16)}
    assert fit_amortised(costs) == pytest.approx((4 * US, 1 * US))
    with pytest.raises(ValueError, match="two intervals"):
        fit_amortised({1: 1.0})
