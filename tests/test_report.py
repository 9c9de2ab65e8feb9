"""What people see, made from records alone."""

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest

from detokbench.records.schema import GateResult, Record, Row
from detokbench.records.store import read_record
from detokbench.report.kinds import draw_chart
from detokbench.report.measure_c_screen import print_measure_c
from detokbench.report.reading import read_measure_c
from detokbench.report.units import (
    count,
    digits_for,
    duration,
    microseconds,
    rate,
    significant,
    times,
)

REFERENCE = Path(__file__).parent.parent / "results" / "reference" / "measure-c-llama-3.json"


def row(path, value, metric="per_token", batch=32, spread=0.01, threads=None, prompt_len=None):
    return Row(
        path=path,
        batch=batch,
        metric=metric,
        median=value,
        ci_low=value * (1 - spread),
        ci_high=value * (1 + spread),
        mad=value * spread / 2,
        samples=[value] * 6,
        vocab="llama-3",
        threads=threads,
        prompt_len=prompt_len,
    )


def record(*rows, gate=()):
    return Record(
        kind="measure-c",
        created="2026-01-02T03:04:05Z",
        command=[],
        detokbench="0.1.0",
        scenario={"name": "s", "stop": []},
        vocabulary={"name": "v", "ids": 10, "tokenizer": "Rust", "source": "a test"},
        settings={"pinned": True, "gc": False, "processes": 6, "processes_finished": 6},
        machine={"cpu": "a CPU", "cpus_usable": 2, "python": "CPython 3.11"},
        packages={"tokenizers": "0.23", "transformers": "5.24"},
        gate=list(gate),
        rows=list(rows),
    )


def screen(shown, width):
    from rich.console import Console

    out = io.StringIO()
    print_measure_c(shown, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize(
    ("value", "low", "high", "digits"),
    [
        (9.53e-7, 9.48e-7, 9.58e-7, 3),  # known to 0.5 %
        (9.53e-7, 9.0e-7, 10.0e-7, 2),  # known to 5 %
        (9.53e-7, 5e-7, 15e-7, 2),  # never fewer than two
        (9.53e-7, 9.53e-7, 9.53e-7, 3),  # never more than three
        (9.53e-7, None, None, 2),
    ],
)
def test_digits_follow_the_interval(value, low, high, digits):
    assert digits_for(value, low, high) == digits


def test_numbers_are_written_for_people():
    assert significant(1234.5, 2) == "1,200"
    assert significant(0.05678, 2) == "0.057"
    assert significant(9.96, 2) == "10"
    assert significant(0, 2) == "0"
    assert microseconds(5.2e-7) == "0.52"
    assert duration(7.61e-3) == "7.6 ms"
    assert duration(3e-8) == "30 ns"
    assert rate(1_050_000) == "1.1 M"
    assert rate(210_000) == "210 k"
    assert times(1.163) == "1.2×"
    assert (count(8192), count(128), count(1500)) == ("8k", "128", "1500")


def test_the_cheapest_path_is_named_with_what_it_saves_of_a_front_end():
    sentence = read_measure_c(record(row("fast", 1.0e-6), row("byte-table", 0.05e-6)))[0]
    assert sentence.startswith("byte-table is the cheapest path")
    assert "20× cheaper than fast" in sentence
    assert "3.5 % of a whole front end of 27 µs" in sentence


def test_a_path_with_wrong_text_is_never_the_cheapest():
    gate = [GateResult(path="naive", verdict="expected", texts=20, differing=["emoji"])]
    sentence = read_measure_c(record(row("naive", 1e-9), row("fast", 1e-6), gate=gate))[0]
    assert sentence.startswith("fast is the cheapest path")


@pytest.mark.parametrize(
    ("batched", "expected"),
    [
        (6.0e-6, "does not pay: it costs 1.2×"),
        (3.8e-6, "beats rows of decode by 1.3×"),
        (5.01e-6, "no difference could be told"),
    ],
)
def test_batch_against_rows_is_said_only_where_the_intervals_are_apart(batched, expected):
    read = read_measure_c(record(row("batch-decode", batched), row("row-decode", 5.0e-6)))
    assert any(expected in sentence for sentence in read)


def test_the_assumed_cost_is_set_against_the_measured_call():
    read = read_measure_c(record(row("fast", 1e-6), row("fast", 0.5e-6, metric="call")))
    assert any("10 µs often assumed is 20× too high" in sentence for sentence in read)


def test_first_tokens_are_summed_over_admission_and_step():
    rows = [
        row(path, value, metric=metric, batch=1, prompt_len=32768)
        for path, metric, value in [
            ("fast", "admit", 1e-3),
            ("fast", "first_token", 7e-3),
            ("slow", "admit", 5e-6),
            ("slow", "first_token", 6e-6),
        ]
    ]
    read = read_measure_c(record(*rows, row("fast", 1e-6)))
    assert any("fast 8.0 ms after a prompt of 32k ids" in sentence for sentence in read)


def test_a_record_without_rows_reads_as_nothing():
    assert read_measure_c(record()) == []
    assert "measure-c" in screen(record(), 80)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_reference_record_fits_any_window(width):
    printed = screen(read_record(REFERENCE), width)
    assert max(map(len, printed.splitlines())) <= width
    assert "byte-table" in printed
    assert "…" not in printed


def test_wide_windows_get_all_columns():
    printed = screen(read_record(REFERENCE), 140)
    for header in ("calls", "ids→", "10 µs", "tokens/s", "÷ fast", "±%"):
        assert header in printed


def test_charts_are_redone_from_the_record_alone(tmp_path):
    png, svg = draw_chart(read_record(REFERENCE), tmp_path / "chart.json")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_a_record_without_rows_has_no_chart(tmp_path):
    assert draw_chart(record(), tmp_path / "chart.json") == []
