"""``fidelity``: texts and costs of our paths beside an engine's classes, on stand-ins."""

import json
import subprocess
import sys

import msgspec
import pytest

from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.fidelity.compare import disagreement
from detokbench.fidelity.costs import _cost
from detokbench.fidelity.known import Outcome, known_as
from detokbench.fidelity.pairs import PAIRS, Pair, pairs_from
from detokbench.fidelity.texts import TextTask, compare_texts
from detokbench.paths.installed_engine import ENGINE_OF_PATH, can_run_here, why_absent
from detokbench.records.fidelity import PairCost
from detokbench.records.schema import Record
from detokbench.report.fidelity_reading import verdict
from detokbench.report.kinds import KINDS
from detokbench.stops.request import StopFinish, StopRequest
from detokbench.verify.stream import Observation, Stream
from detokbench.workload.cases import shipped_cases
from tests.stand_in_engines import VLLM, in_this_process, install
from tests.streaming import assert_error

DETOKENIZER = "vllm/v1/engine/detokenizer.py"
FAST = Pair("fast", "vllm")
THE = 279  # ' the' in Llama-3


def task(**changed):
    given = {"vocabulary": "llama-3", "pairs": (FAST,), "cases": (), "fuzz": 20, "seed": 0}
    return TextTask(**(given | changed))


def seen(*deltas, ending="", error="", finish=None):
    return Observation(list(deltas), ending, error, finish)


def test_the_same_is_no_disagreement():
    ours = seen("a", "b", ending="c", finish=StopFinish("x", 2, 0, 1))
    assert disagreement(ours, seen("a", "b", ending="c", finish=StopFinish("x", 2))) is None
    assert disagreement(seen("a", error="TypeError: x"), seen("a", error="TypeError: y")) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "what", "step"),
    [
        (seen("a", "b"), seen("ab", ""), "delta", 0),
        (seen("a", "b"), seen("a", "c"), "delta", 1),
        (seen("a", ending="b"), seen("a", ending="c"), "end", 1),
        (seen("a"), seen(error="TypeError: x"), "error", 0),
        (seen(error="ValueError: x"), seen(error="TypeError: x"), "error", 0),
        (seen("a", finish=StopFinish("x", 1)), seen("a", "b"), "stop", 1),
        (seen("a", finish=StopFinish("x", 1)), seen("a", finish=StopFinish("x", 2)), "stop", 1),
    ],
)
def test_what_differs_first(ours, theirs, what, step):
    found = disagreement(ours, theirs)
    assert (found.what, found.step) == (what, step)


def test_an_engine_that_does_the_same_has_no_differences(tmp_path):
    install(tmp_path, VLLM)
    with in_this_process(tmp_path):
        (found,) = compare_texts(task(fuzz=0))
    assert found.streams > 500 and found.runs > found.streams and found.steps > found.runs
    assert (found.differing, found.known, found.differences) == (0, {}, [])


def test_a_difference_is_shown_with_the_smallest_stream(tmp_path):
    other = ("self.stream.step(self.rust, token_id) or", "self._odd(token_id) or")
    method = """
    def _odd(self, token_id):
        text = self.stream.step(self.rust, token_id)
        return "?" if token_id == 279 else text

    def num_output_tokens"""
    files = VLLM | {DETOKENIZER: VLLM[DETOKENIZER].replace("\n    def num_output_tokens", method)}
    install(tmp_path, files, {DETOKENIZER: other})
    with in_this_process(tmp_path):
        (found,) = compare_texts(task(fuzz=0))
    assert found.differing > 20
    (shown,) = (d for d in found.differences if d.what == "delta" and not d.input.stop)
    assert (shown.ours, shown.theirs, shown.known) == (" the", "?", "")
    assert (shown.input.prompt, shown.input.output) == ([], [THE])
    assert shown.runs > 20 and shown.origin.startswith("text ")


def test_a_pair_that_does_not_apply_says_why(tmp_path):
    install(tmp_path, VLLM)
    with in_this_process(tmp_path):
        (found,) = compare_texts(task(vocabulary="tekken"))
    assert found.why_not == "DecodeStream needs a Rust tokenizer" and found.runs == 0


def known(theirs, stream, ours, its, llama3):
    first = disagreement(ours, its)
    return known_as(theirs, Outcome(stream, llama3, ours, its, first))


def test_known_differences_are_sglangs_alone(llama3):
    stops = StopRequest(("x",))
    odd = Stream((), (1, -1), stops=stops)
    ours, its = seen("a", "b"), seen("a", "c", finish=StopFinish("NaN happened", 2))
    assert known("sglang", odd, ours, its, llama3) == "no id"
    assert known("vllm", odd, ours, its, llama3) == ""
    assert known("sglang", Stream((), (1, -1)), ours, its, llama3) == ""
    assert known("sglang", Stream((), (1, 2), stops=stops), ours, its, llama3) == ""


def test_a_last_chunk_sent_twice_is_known_and_one_that_is_lost_is_not(llama3):
    stream = Stream((), (1, 2), stops=StopRequest(("x",)))
    twice, once = seen("a", ".b", ending=".bc"), seen("a", ".b", ending="c")
    assert known("sglang-rows", stream, twice, once, llama3) == "last chunk"
    assert known("sglang-rows", stream, once, twice, llama3) == ""
    assert known("sglang-rows", stream, seen("a", ".b", ending="dc"), once, llama3) == ""


def test_ratios_are_taken_within_each_process():
    cost = _cost(FAST, 32, [2.0, 8.0, None], [1.0, 4.0, 1.0], "llama-3")
    assert cost.ratios == [2.0, 2.0] and cost.ratio == 2.0
    assert (cost.ours_s, cost.theirs_s) == (5.0, 1.0)
    assert _cost(FAST, 32, [None], [1.0], "llama-3").ratio is None


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (1.0, 0.9, 1.1, "alike"),
        (1.2, 1.1, 1.3, "not told"),
        (1.4, 1.3, 1.5, "apart"),
        (0.7, 0.6, 0.79, "apart"),
        (1.0, None, None, "alike"),
        (1.3, None, None, "apart"),
        (None, None, None, ""),
    ],
)
def test_a_cost_is_alike_where_its_interval_lies_within(ratio, low, high, said):
    cost = PairCost(
        ours="fast", theirs="vllm", vocab="v", batch=32, ours_s=1, theirs_s=1, ratio=ratio,
        ci_low=low, ci_high=high, ratios=[],
    )  # fmt: skip
    assert verdict(cost, (0.8, 1.25)) == said


def test_every_pair_has_an_engine_and_a_path_of_ours():
    assert {pair.theirs for pair in PAIRS} <= set(ENGINE_OF_PATH)
    assert not {pair.ours for pair in PAIRS} & set(ENGINE_OF_PATH)


def test_without_an_engine_there_is_nothing_to_compare(capsys):
    if any(can_run_here(pair.theirs) for pair in PAIRS):
        pytest.skip("an engine is installed")
    assert main(["fidelity"]) == ExitCode.BROKEN_SETUP
    assert "no engine is installed" in capsys.readouterr().err
    with pytest.raises(DetokbenchError) as caught:
        pairs_from("fast:vllm")
    assert_error(caught, ExitCode.BROKEN_SETUP, "fast:vllm", "vllm is not installed")


@pytest.mark.parametrize("pairs", ["fast:sglang", "fast", "", "fast:vllm,"])
def test_a_pair_that_is_none(pairs):
    with pytest.raises(DetokbenchError) as caught:
        pairs_from(pairs)
    assert_error(caught, ExitCode.USAGE, "--pairs")


def run_command(folder, environment, *arguments):
    return subprocess.run(
        [
            sys.executable, "-m", "detokbench", "fidelity", "--pairs", "fast:vllm", "--vocab",
            "llama-3", "--fuzz", "5", "--out", str(folder), *arguments,
        ],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip


def test_the_command_from_end_to_end(tmp_path):
    environment = install(tmp_path, VLLM)
    run = run_command(tmp_path / "out", environment, "--quick", "--batch", "4", "--json")
    record = msgspec.json.decode(run.stdout.encode(), type=Record)
    details = record.details
    assert details["engines"] == [{"name": "vllm", "version": "9.9", "tried": ["0.33.0"]}]
    assert record.packages["vllm"] == "9.9"
    (cost,) = details["costs"]
    assert cost["batch"] == 4 and len(cost["ratios"]) == 2 and cost["ratio"] > 0
    (texts,) = details["texts"]
    assert texts["runs"] > 1000
    expected = ExitCode.FAILED_CHECK if texts["differing"] else ExitCode.OK
    assert run.returncode == expected, run.stderr
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".json", ".png", ".svg"}
    (stored,) = (tmp_path / "out").glob("*.json")
    assert json.loads(stored.read_text())["kind"] == "fidelity"
    shown = subprocess.run(
        [sys.executable, "-m", "detokbench", "show", str(stored)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "vllm 9.9 has not been tried before; tried: 0.33.0." in shown.stdout


def test_without_costs_there_is_no_chart(tmp_path):
    environment = install(tmp_path, VLLM)
    run_command(tmp_path / "out", environment, "--no-cost", "--json")
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".json"]


def test_the_kind_is_known():
    assert "fidelity" in KINDS


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@pytest.mark.parametrize("name", ["llama-3", "tekken", "mistral-spm-fast"])
def test_the_engine_itself_gives_the_same_texts(pair, name):
    absent = why_absent(ENGINE_OF_PATH[pair.theirs])
    if absent is not None:
        pytest.skip(absent)
    cases = tuple(case for case in shipped_cases() if case.vocabulary == name)
    (found,) = compare_texts(task(vocabulary=name, pairs=(pair,), cases=cases, fuzz=100))
    assert found.why_not or found.runs > 1000
    assert found.differing == 0, found.differences
