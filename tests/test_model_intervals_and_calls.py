"""Stream intervals, calls a step, event-loop slices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detokbench.model.blocks import loop_blocks
from detokbench.model.calls import Calls, chapter_calls, engine_calls
from detokbench.model.stream_interval import (
    chunk_count,
    chunks_per_step,
    ids_per_chunk,
    sglang_sequence_s,
    sglang_window_ids,
    smallest_interval,
    vllm_sequence_s,
)
from detokbench.paths.registry import path_names

deterministic = settings(derandomize=True, deadline=None)


def chunks_by_the_rule(ids: int, interval: int, ids_per_step: int) -> list[int]:
    """Both engines' rule, step by step: sizes of the chunks sent."""
    have, sent, chunks = 0, 0, []
    while have < ids:
        have = min(have + ids_per_step, ids)
        if have == ids or sent == 0 or have - sent >= interval:
            chunks.append(have - sent)
            sent = have
    return chunks


@deterministic
@given(ids=st.integers(1, 200), interval=st.integers(1, 40), ids_per_step=st.integers(1, 9))
def test_chunks_follow_the_rule_and_lose_nothing(
    ids: int, interval: int, ids_per_step: int
) -> None:
    chunks = chunks_by_the_rule(ids, interval, ids_per_step)
    assert sum(chunks) == ids
    assert chunk_count(ids, interval, ids_per_step) == len(chunks)
    assert set(chunks[1:-1]) <= {ids_per_chunk(interval, ids_per_step)}


@pytest.mark.parametrize("interval", [1, 2, 4, 8, 10])
def test_chunks_at_one_id_a_step(interval: int) -> None:
    for ids in range(1, 101):
        assert chunk_count(ids, interval) == 1 + -(-(ids - 1) // interval)
    assert chunk_count(0, interval) == 0
    assert chunk_count(1, interval) == 1  # the first token never waits


def test_ids_beyond_the_interval_ride_along() -> None:
    assert chunks_per_step(3, 2) == 1 / 2  # not 2/3
    assert chunks_per_step(2, 4) == 1.0
    assert sglang_window_ids(1) == (1, 2)
    assert sglang_window_ids(8) == (8, 16)


def test_what_each_engine_amortises() -> None:
    assert vllm_sequence_s(1e-6, 20e-6, 1) == pytest.approx(21e-6)
    assert vllm_sequence_s(1e-6, 20e-6, 10) == pytest.approx(3e-6)
    assert vllm_sequence_s(1e-6, 20e-6, 10, ids_per_step=5) == pytest.approx(15e-6)
    assert sglang_sequence_s(4e-6, 20e-6, 10) == pytest.approx(2.4e-6)


def test_the_smallest_interval_that_keeps_up() -> None:
    def host_s(k: int) -> float:
        return 256 * vllm_sequence_s(4e-6, 23e-6, k)

    assert smallest_interval(host_s, 4.48e-3) == 2
    assert smallest_interval(host_s, 7e-3) == 1
    assert smallest_interval(host_s, 1e-3) is None  # decoding alone takes 1.02 ms
    assert smallest_interval(host_s, 4.48e-3, [16, 4, 1]) == 4


def test_the_chapters_call_table() -> None:
    table = {
        name: chapter_calls(name, 256) for name in ("slow", "fast", "batch-decode", "tail_str")
    }
    assert table == {"slow": 512, "fast": 256, "batch-decode": 2, "tail_str": 512}
    with pytest.raises(KeyError):
        chapter_calls("naive", 256)


def test_calls_as_the_engines_make_them() -> None:
    assert engine_calls("slow", 256) == Calls(768, 512)
    assert engine_calls("fast", 256, interval=8) == Calls(256, 256)  # no interval spares a decode
    assert engine_calls("fast", 256, ids_per_step=3) == Calls(768, 768)
    assert engine_calls("batch-decode", 256) == Calls(2, 512)
    assert engine_calls("row-decode", 256, interval=8) == Calls(64, 64)
    assert engine_calls("byte-table", 256) == Calls(0, 0)
    rarely = engine_calls("batch-decode", 4, interval=16)
    assert rarely.windows == 0.5
    assert rarely.calls < 0.5


def test_every_path_of_ours_has_its_calls() -> None:
    assert [engine_calls(name, 8) for name in path_names() if name not in {"vllm", "sglang"}]


@pytest.mark.parametrize(("chunk_size", "slices"), [(128, 4), (256, 2), (None, 1)])
def test_event_loop_slices_at_400_rows(chunk_size: int | None, slices: int) -> None:
    blocks = loop_blocks(400, 10e-6, chunk_size)
    assert len(blocks.slices) == slices
    assert sum(blocks.slices) == 400
    assert blocks.longest_block_s == pytest.approx((chunk_size or 400) * 10e-6)


def test_fewer_slices_more_throughput() -> None:
    steps = [loop_blocks(400, 10e-6, size, yield_s=50e-6).step_s for size in (128, 256, None)]
    assert steps == pytest.approx([4.15e-3, 4.05e-3, 4.0e-3])


def test_no_rows_no_slices() -> None:
    blocks = loop_blocks(0, 10e-6, None)
    assert (blocks.slices, blocks.longest_block_s, blocks.step_s) == ((), 0, 0)
    assert loop_blocks(128, 10e-6).slices == (128,)
