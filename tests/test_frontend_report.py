"""What a ``frontend`` record looks like on the screen and as a chart."""

import io

import pytest
from frontend_records import PYTHON, frontend_details, frontend_record, run
from rich.console import Console

from detokbench.records.frontend import details_of
from detokbench.report.frontend_chart import frontend_figure
from detokbench.report.frontend_reading import read_frontend
from detokbench.report.frontend_runs import common_run, roles_of, shown_runs
from detokbench.report.frontend_screen import print_frontend


def screen(record, width=120):
    out = io.StringIO()
    print_frontend(record, Console(file=out, width=width))
    return out.getvalue()


def test_the_sentences_of_a_record():
    assert read_frontend(frontend_record()) == [
        "A token costs sglang-rs 9.0 µs of CPU, vllm 27 µs (3.0×), at 128 streams and a step of "
        "5.00 ms (measured; all processes of the front end, requests and connections included).",
        "vllm: 27 µs of CPU a token at 128 streams, 220 µs at 1: what a step costs is shared "
        "(measured).",
        "sglang-rs: 9.0 µs of CPU a token at 128 streams, 77 µs at 1: what a step costs is shared "
        "(measured).",
        "vllm holds 25,600 tokens/s at 128 streams, a step of 5.00 ms (measured); beyond it "
        "chunks merge: 0.80 a token.",
        "sglang-rs holds ≥ 64,000 tokens/s at 128 streams, a step of 2.00 ms (measured), 2.5 "
        "events in a read; beyond it streams take 1.20 of their time.",
        "vllm against Some GPU with llama-3-8b at context 128 (roofline, modelled): B* 121; a "
        "batch of 256 needs 3 front ends, each with cores of its own.",
        "sglang-rs against Some GPU with llama-3-8b at context 128 (roofline, modelled): B* never.",
        "vllm, beside plain completions at 27 µs a token: chat +13 µs (measured).",
        "A stream that ends inside a character: vllm: what is open is dropped; sglang-rs: 1 "
        "U+FFFD.",
        "The text of all 400 streams read is that of the ids sent, whole or up to where the run "
        "ended.",
    ]


def test_a_bound_is_marked_and_warned_of():
    shown = screen(frontend_record())
    assert "≥ 64,000" in shown
    assert "client-bound: our client used up to" in shown
    assert "sglang-rs: left out logprobs 1: the server answered 400" in shown
    assert "≥ 4,000" in shown
    assert "nothing shorter was tried" in shown


def test_wrong_text_is_said_instead_of_right():
    wrong = run("vllm", 128, 5, PYTHON, wrong=3, first_difference="request 7, character 2: …")
    (sentence,) = [
        s for s in read_frontend(frontend_record(runs=[wrong])) if "streams" in s and "text" in s
    ]
    assert sentence.startswith("3 of 50 streams have another text than their ids: vllm")
    assert "character 2" in sentence


def test_of_runs_alike_one_that_holds_is_shown():
    broken, holding = run("vllm", 4, 5, PYTHON, chunks=0.5), run("vllm", 4, 5, PYTHON)
    for runs in ([broken, holding], [holding, broken]):
        assert shown_runs(frontend_details(runs=runs), "vllm") == [holding]
    searched = run("vllm", 4, 5, PYTHON, of="search")
    assert shown_runs(frontend_details(runs=[searched]), "vllm") == []


def test_engines_are_compared_where_all_hold():
    details = frontend_details()
    assert {name: r.t_step_s for name, r in common_run(details).items()} == {
        "vllm": 5e-3, "sglang-rs": 5e-3
    }  # fmt: skip
    only_one = frontend_details(runs=details.runs[:3])
    assert common_run(only_one) == {}


def test_roles_come_in_one_order_and_ours_last():
    runs = [run("vllm", 1, 5, {"client": 1, "engine": 1, "odd": 1, "detokenizer": 1, "http": 1})]
    assert roles_of(runs) == ["http", "detokenizer", "odd", "engine", "client"]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_screen_fits(width):
    lines = screen(frontend_record(), width).splitlines()
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("changes", "panels"),
    [
        ({}, 4),
        ({"limits": [], "answers": []}, 2),
        ({"engines": [], "runs": [], "limits": []}, None),
    ],
)
def test_a_chart_has_what_the_record_has(changes, panels):
    figure = frontend_figure(frontend_record(**changes))
    assert (figure and len(figure.axes)) == panels


def test_details_survive_the_file():
    assert details_of(frontend_record()) == frontend_details()
