"""From what processes timed to the rows of a record, on made-up processes."""

import pytest

from detokbench.bench.plan import Cell, CellFacts, cells_for, thread_counts
from detokbench.bench.rows import rows_of
from detokbench.paths import load_path_class
from detokbench.records.schema import CellSamples, GateResult, ProcessRun
from detokbench.workload.scenario import load_scenario

SCENARIO, _ = load_scenario("llama3-chat")


def process(**values):
    """One process with ``per_token`` at B = 32 of each path, in seconds."""
    cells = [
        CellSamples(
            path=path.replace("_", "-"),
            metric="per_token",
            batch=32,
            value_s=value,
            intercept_s=0.0,
            warmup_ns=0,
            points=[],
        )
        for path, value in values.items()
    ]
    return ProcessRun(cpu=0, clock_floor_ns=40, seconds=1.0, cells=cells)


def per_token(*paths):
    return [Cell(path=path, metric="per_token", batch=32) for path in paths]


def test_ratio_to_fast_is_within_processes():
    processes = [process(fast=1e-6, slow=4e-6), process(fast=3e-6, slow=12e-6)]
    slow = rows_of(per_token("fast", "slow"), processes, {}, [], SCENARIO)[1]
    assert slow.ratio_to_fast == pytest.approx(4.0)
    assert slow.median == pytest.approx(8e-6)


def test_a_process_without_a_cell_has_null_in_its_place():
    processes = [process(fast=1e-6, slow=4e-6), process(fast=3e-6)]
    slow = rows_of(per_token("fast", "slow"), processes, {}, [], SCENARIO)[1]
    assert slow.samples == [4e-6, None]
    assert slow.median == 4e-6


def test_a_cell_that_nobody_timed_has_no_row():
    rows = rows_of(per_token("fast", "slow"), [process(fast=1e-6)], {}, [], SCENARIO)
    assert [row.path for row in rows] == ["fast"]


def test_without_fast_there_is_no_ratio():
    row = rows_of(per_token("slow"), [process(slow=1e-6)], {}, [], SCENARIO)[0]
    assert row.ratio_to_fast is None


def test_counts_and_verdict_come_along():
    facts = {
        Cell(path="slow", metric="call", batch=32): CellFacts(
            call="convert_tokens_to_string", calls_per_token=2.0, lookups_per_token=1.0
        )
    }
    gate = [GateResult(path="slow", verdict="fail", texts=20)]
    row = rows_of(per_token("slow"), [process(slow=1e-6)], facts, gate, SCENARIO)[0]
    assert (row.call, row.calls_per_token, row.lookups_per_token, row.gate) == (
        "convert_tokens_to_string",
        2.0,
        1.0,
        "fail",
    )


def test_cells_cover_steps_calls_and_admission():
    cells = cells_for([load_path_class("fast")], SCENARIO, cpus=2)
    assert {cell.metric for cell in cells} == {
        "floor",
        "per_token",
        "call",
        "admit",
        "first_token",
    }
    assert {cell.prompt_len for cell in cells if cell.metric == "admit"} == {128, 1024, 8192, 32768}
    assert len(cells) == len(set(cells))


def test_threads_are_one_and_all_without_repeats():
    rust_batch = load_path_class("rust-batch")
    assert thread_counts(rust_batch, cpus=8) == [1, 8]
    assert thread_counts(rust_batch, cpus=1) == [1]
    assert thread_counts(load_path_class("fast"), cpus=8) == [None]
