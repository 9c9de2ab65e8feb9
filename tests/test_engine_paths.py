"""Paths of an installed engine: on stand-ins, and on the engines themselves where they are."""

import subprocess
import sys

import pytest

from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.paths import Flags, load_path_class, path_names
from detokbench.paths.installed_engine import ENGINE_OF_PATH, installed_version, why_absent
from detokbench.paths.registry import known_path_names
from detokbench.stops.request import StopRequest
from tests.stand_in_engines import SGLANG, VLLM, in_this_process, install
from tests.streaming import assert_error, deltas, one_by_one, vocabulary

DETOKENIZER = "vllm/v1/engine/detokenizer.py"
PARAMS = "vllm/sampling_params.py"
MESSAGE = "sglang/srt/managers/io_struct.py"
MANAGER = "sglang/srt/managers/detokenizer_manager.py"


@pytest.fixture
def vllm(tmp_path):
    install(tmp_path, VLLM)
    with in_this_process(tmp_path):
        yield


@pytest.fixture
def sglang(tmp_path):
    install(tmp_path, SGLANG)
    with in_this_process(tmp_path):
        from sglang.srt.managers.detokenizer_manager import SEEN

        yield SEEN


@pytest.mark.parametrize("path", ENGINE_OF_PATH)
def test_without_its_engine_a_path_is_known_and_left_out_of_the_defaults(path, llama3):
    engine = ENGINE_OF_PATH[path]
    if installed_version(engine) is not None:
        pytest.skip(f"{engine} is installed")
    assert path in known_path_names()
    assert path not in path_names()
    reason = f"{engine} is not installed in this environment"
    assert load_path_class(path).why_not(llama3) == reason
    with pytest.raises(DetokbenchError) as caught:
        load_path_class(path)(llama3)
    assert_error(caught, ExitCode.BROKEN_SETUP, reason)


@pytest.mark.parametrize("path", [p for p, engine in ENGINE_OF_PATH.items() if engine == "vllm"])
def test_what_the_engine_sends_is_what_the_path_gives(path, vllm, llama3):
    assert path in path_names()
    assert load_path_class(path).why_not(llama3) is None
    prompt, output = llama3.encode("Say"), llama3.encode(" hello 🤗, world")
    sent = deltas(load_path_class(path)(llama3), one_by_one(output), prompt)
    assert "".join(sent) == " hello 🤗, world"
    if path != "vllm-output-stop":  # which holds back what may be the beginning of its stop
        assert sent == deltas(load_path_class("fast")(llama3), one_by_one(output), prompt)


def test_statistics_are_kept_where_the_path_says_so(vllm, llama3):
    for path, wanted in (("vllm-output", True), ("vllm-output-no-stats", False)):
        built = load_path_class(path)(llama3)
        assert built._processor.log_stats is wanted  # the stand-in checks every step by it


@pytest.mark.parametrize("path", ["vllm", "vllm-output"])
def test_stops_are_looked_for_by_the_engine(path, vllm, llama3):
    built = load_path_class(path)(llama3)
    stream = built.open_with_stops([], Flags(), StopRequest(("two",)))
    sent = [stream.step([token_id]) for token_id in llama3.encode("one two three")]
    assert "".join(sent) == "one "
    assert (stream.finish.matched, stream.finish.kept_ids) == ("two", 2)
    assert stream.end() == "" and stream.step([9906]) == ""


@pytest.mark.parametrize("path", ["vllm", "vllm-output"])
def test_a_stop_id_ends_the_step_behind_it(path, vllm, llama3):
    one, two = llama3.encode("one two")
    stream = load_path_class(path)(llama3).open_with_stops(
        [], Flags(), StopRequest(stop_ids=frozenset({two}))
    )
    stream.step([one, two, one])
    assert (stream.finish.matched, stream.finish.kept_ids) == (two, 2)


def test_the_first_message_of_a_row_carries_the_end_of_its_prompt(sglang, llama3):
    path = load_path_class("sglang")(llama3)
    flags = [Flags(), Flags(skip_special_tokens=False)]
    a, b = path.open([[1, 2, 3, 4, 5, 6, 7], [8]], flags)
    assert path.step([a, b], [[10], [11]]) == ["6.", "2."]
    assert path.step([a, b], [[12], [13]]) == ["1.", "1."]
    assert path.step([b], [[14]]) == ["1."]
    first, second, third = sglang
    assert first.decode_ids == [[3, 4, 5, 6, 7, 10], [8, 11]]
    assert first.read_offsets == [5, 1]
    assert first.skip_special_tokens == [True, False]
    assert first.never_heard_of is None
    assert second.decode_ids == [[12], [13]] and second.rids == first.rids
    assert third.rids == first.rids[1:]
    assert path.end(a) == "0."
    assert sglang[-1].finished_reasons[0]["type"] == "length"


def test_a_row_that_ends_without_a_step_still_sends_its_context(sglang, llama3):
    path = load_path_class("sglang")(llama3)
    (row,) = path.open([[1, 2]])
    path.end(row)
    assert sglang[-1].decode_ids == [[1, 2]]


@pytest.mark.parametrize(("path", "batch"), [("sglang", True), ("sglang-rows", False)])
def test_batch_decode_is_what_tells_the_two_apart(path, batch, sglang, llama3):
    built = load_path_class(path)(llama3)
    built.step(built.open([[]]), [[1]])
    assert sglang[-1].batch is batch


def test_python_sentencepiece_is_none_of_sglangs(sglang, spm):
    assert "mistral-spm-fast" in load_path_class("sglang").why_not(spm)


MOVED = {
    "a class": (VLLM, {DETOKENIZER: ("IncrementalDetokenizer", "Moved")}, "vllm",
                "9.9 (tried: 0.33.0) has no vllm.v1.engine.detokenizer.IncrementalDetokenizer"),
    "a module": ({k: v for k, v in VLLM.items() if k != DETOKENIZER}, {}, "vllm",
                 "has no module vllm.v1.engine.detokenizer"),
    "a parameter": (VLLM, {PARAMS: ("min_tokens", "least")}, "vllm", "'min_tokens'"),
    "a needed package": (VLLM, {DETOKENIZER: ("from tokenizers", "import no_such_thing\\nfrom x")},
                         "vllm", "no_such_thing"),
    "a method": (VLLM, {DETOKENIZER: ("get_next_output_text", "next_text")}, "vllm",
                 "get_next_output_text"),
    "a field": (SGLANG, {MESSAGE: ("read_offsets", "offsets")}, "sglang",
                "BatchTokenIDOutput of sglang 9.9 (tried: 0.5.23) has no field read_offsets"),
    "a manager's method": (SGLANG, {MANAGER: ("handle_batch_token_id_out", "handle")}, "sglang",
                           "has no DetokenizerManager.handle_batch_token_id_out"),
    "an attribute": (SGLANG, {MANAGER: ("self.disable_tokenizer", "self.new_name")}, "sglang",
                     "new_name_batch_decode"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "changed", "path", "says"), MOVED.values(), ids=MOVED)
def test_what_has_moved_is_named(files, changed, path, says, tmp_path, llama3):
    changed = {place: (a, b.replace("\\n", "\n")) for place, (a, b) in changed.items()}
    install(tmp_path, files, changed)
    with in_this_process(tmp_path):
        reason = load_path_class(path).why_not(llama3)
    assert says in reason
    assert "9.9" in reason and "\n" not in reason


def test_a_module_without_a_version_is_no_engine(monkeypatch):
    if installed_version("vllm") is not None:
        pytest.skip("vllm is installed")
    monkeypatch.setitem(sys.modules, "vllm", type(sys)("vllm"))
    assert why_absent("vllm") is not None


def test_the_list_says_which_version_it_would_measure(tmp_path):
    environment = install(tmp_path, VLLM) | {"COLUMNS": "200"}
    run = subprocess.run(
        [sys.executable, "-m", "detokbench", "paths", "list"],
        check=True, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert "vllm 9.9 (tried: 0.33.0)" in run.stdout
    table = {tuple(line.split()) for line in run.stdout.splitlines()}
    assert ("vllm", "0.33.0", "9.9") in table
    if installed_version("sglang") is None:
        assert "not available: sglang is not installed" in run.stdout
        assert ("sglang", "0.5.23", "–") in table


def test_listing_imports_no_engine(tmp_path):
    changed = {"vllm/__init__.py": ("__version__", "raise ImportError\n__version__")}
    environment = install(tmp_path, VLLM, changed)
    code = "from detokbench.cli import main; raise SystemExit(main(['paths', 'list']))"
    run = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr


def test_a_trace_of_a_path_whose_engine_is_absent(capsys):
    if installed_version("vllm") is not None:
        pytest.skip("vllm is installed")
    assert main(["trace", "vllm", "--output-ids", "9906"]) == ExitCode.USAGE
    assert "vllm is not installed in this environment" in capsys.readouterr().err


def test_checks_of_an_absent_engine(capsys):
    if installed_version("sglang") is not None:
        pytest.skip("sglang is installed")
    assert main(["tail-str", "--checks", "sglang"]) == ExitCode.BROKEN_SETUP
    assert "sglang is not installed" in capsys.readouterr().err
    assert main(["tail-str", "--checks", "nobody"]) == ExitCode.USAGE


@pytest.mark.parametrize("path", ENGINE_OF_PATH)
@pytest.mark.parametrize("name", ["llama-3", "tekken"])
def test_the_engine_itself_streams_plain_text(path, name):
    absent = why_absent(ENGINE_OF_PATH[path])
    if absent is not None:
        pytest.skip(absent)
    on = vocabulary(name)
    assert load_path_class(path).why_not(on) is None
    text = "Hello 🤗, as  plain\nas can be"
    sent = deltas(load_path_class(path)(on), one_by_one(on.encode(text)))
    assert "".join(sent) == text


def test_the_scheduler_itself_finds_and_holds(llama3):
    absent = why_absent("sglang")
    if absent is not None:
        pytest.skip(absent)
    from array import array

    from detokbench.paths.sglang_check import SchedulerCheck

    check = SchedulerCheck(llama3, ["</answer>"], [])
    output = array("q", llama3.encode("so it is </ans"))
    assert check.suppresses(output)
    assert check.tail(output, 1).endswith("</ans")
    check.find(output, 1)
    check.confirm_unfinished()
    check.find(array("q", llama3.encode("so it is </answer>")), 1)
    with pytest.raises(DetokbenchError):
        check.confirm_unfinished()
