"""``detokbench frontend`` with a front end of the tests' own. No time decides a test."""

import json
import tempfile
from pathlib import Path

import canned_front_end
import msgspec
import psutil
import pytest

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.live.engines import frontend_plan, frontend_run, one_engine, registry
from detokbench.live.engines.frontend_plan import Effort
from detokbench.records.frontend import FrontendDetails

TINY = Effort(0.1, 0.4, 0.1, 0.2, 3.0, shortest_s=3e-3, longest_s=12e-3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder whose tokenizer has an id for each byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: number for number, letter in enumerate([*letters, "<end>"])}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    folder = tmp_path_factory.mktemp("models") / "bytes"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return folder


@pytest.fixture
def front_ends(monkeypatch):
    """Front ends by name, registered for one test; none of their processes may be left."""
    found = {}

    def register(name="canned", mode=""):
        found[name] = canned_front_end.CannedFrontEnd(name, mode)

    monkeypatch.setattr(registry, "front_end_names", lambda: list(found))
    monkeypatch.setattr(frontend_run, "load_front_end", found.__getitem__)
    monkeypatch.setattr(frontend_plan, "QUICK", TINY)
    monkeypatch.setattr(one_engine, "_WARM_UP_S", 0.1)
    canned_front_end.STARTED.clear()
    with tempfile.TemporaryDirectory(prefix="t-") as short:  # paths of sockets must be short
        monkeypatch.setattr(tempfile, "tempdir", short)
        yield register
        assert not any(map(psutil.pid_exists, canned_front_end.STARTED))
        assert not list(Path(short).glob("dtb-*"))


def run(model, tmp_path, capsys, *options, code=ExitCode.OK):
    """The record, its details, and what was said on standard error."""
    arguments = [
        "frontend", "--model", str(model), "--engine", "canned", "--streams", "2,4",
        "--t-step", "8ms", "--max-tokens", "48", "--quick", "--no-chart", "--json",
        "--out", str(tmp_path), *options,
    ]  # fmt: skip
    assert main(arguments) == code
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    details = msgspec.convert(record["details"], FrontendDetails, strict=False)
    return record, details, printed.err


def test_a_front_end_is_measured_from_start_to_limit(model, tmp_path, capsys, front_ends):
    front_ends()
    record, details, _ = run(model, tmp_path, capsys)
    assert (record["kind"], record["partial"]) == ("frontend", False)
    (engine,) = details.engines
    assert (engine.name, engine.version, engine.left_out) == ("canned", "1.0", [])
    grid = [run for run in details.runs if run.of == "grid"]
    assert {run.streams for run in grid} == {2, 4}
    for one in details.runs:
        assert one.ids > 0
        assert one.checked > 0
        assert (one.wrong, one.first_difference, one.kept_share) == (0, "", 1.0)
        assert {part.role for part in one.roles} == {"http", "engine", "client"}
        assert one.cpu("http") > 0
        assert 0 < one.chunks_per_token <= 1.01
    assert any(one.itl.count > 20 and one.lag.count > 20 for one in grid)
    assert [limit.streams for limit in details.limits] == [2, 4]
    (end,) = details.open_ends
    assert end.whole.startswith("So it ends: ")
    assert end.behind is not None
    metrics = {row["metric"] for row in record["rows"]}
    assert metrics == {"cpu_per_token", "chunks_per_token", "stretch", "itl", "lag", "ttft"}
    row = next(row for row in record["rows"] if row["metric"] == "cpu_per_token")
    assert (row["engine"], row["t_step"], row["role"]) == ("canned", 8e-3, "http")
    assert {row["streams"] for row in record["rows"]} == {2, 4}


def test_a_front_end_that_merges_holds_no_rate(model, tmp_path, capsys, front_ends):
    front_ends(mode="merge")
    _, details, _ = run(model, tmp_path, capsys, "--streams", "4")
    assert not any(one.holds for one in details.runs)
    assert all(one.chunks_per_token == pytest.approx(0.5, abs=0.05) for one in details.runs)
    tries = [one.t_step_s for one in details.runs]
    assert all(tries.count(t_step_s) == 2 for t_step_s in tries)
    (limit,) = details.limits
    assert (limit.held_s, limit.broke_s) == (None, 12e-3)
    assert "merge" in limit.why
    assert details.answers == []


def test_wrong_text_is_told(model, tmp_path, capsys, front_ends):
    front_ends(mode="wrong")
    _, details, _ = run(model, tmp_path, capsys, "--no-search")
    assert all(one.wrong for one in details.runs)
    assert "'?" in details.runs[0].first_difference
    assert details.limits == []


def test_what_else_requests_can_ask_for_has_runs_of_its_own(model, tmp_path, capsys, front_ends):
    front_ends()
    options = ["--no-search", "--streams", "4", "--stop", "zzz", "--chat", "--logprobs", "1"]
    _, details, _ = run(model, tmp_path, capsys, *options, "--reasoning-parser", "some")
    found = {one.variant: one for one in details.runs}
    assert set(found) == {
        "completions", "stop strings", "chat", "logprobs 1", "chat, reasoning parser some"
    }  # fmt: skip
    assert all(one.wrong == 0 and one.checked for one in found.values())
    assert len(canned_front_end.STARTED) == 2


def test_what_a_front_end_refuses_is_left_out_and_said(model, tmp_path, capsys, front_ends):
    front_ends(mode="refuse")
    options = ["--no-search", "--streams", "4", "--logprobs", "0"]
    _, details, _ = run(model, tmp_path, capsys, *options)
    (left_out,) = details.engines[0].left_out
    assert left_out.startswith("logprobs 0: the server answered 400")
    assert "no logprobs here" in left_out
    assert all(one.variant == "completions" for one in details.runs)


def test_a_server_that_does_not_start_with_a_parser(model, tmp_path, capsys, front_ends):
    front_ends(mode="flags")
    options = ["--no-search", "--streams", "4", "--tool-call-parser", "some"]
    _, details, _ = run(model, tmp_path, capsys, *options)
    (left_out,) = details.engines[0].left_out
    assert "ValueError: no such parser" in left_out
    assert {one.variant for one in details.runs} == {"completions", "chat"}


def test_two_front_ends_go_into_one_record_and_one_chart(model, tmp_path, capsys, front_ends):
    front_ends("canned")
    front_ends("canned-rs")
    run(model, tmp_path, capsys, "--engine", "canned,canned-rs")
    (path,) = tmp_path.glob("*.json")
    assert main(["show", str(path)]) == ExitCode.OK
    screen = capsys.readouterr().out
    for part in ("canned-rs 1.0", "our", "stretch", "tokens/s", "ends inside a character"):
        assert part in screen
    assert "A token costs canned" in screen
    assert main(["plot", str(path)]) == ExitCode.OK
    assert path.with_suffix(".png").stat().st_size > 10_000


def test_a_front_end_that_dies_leaves_what_was_measured(model, tmp_path, capsys, front_ends):
    front_ends("canned")
    front_ends("other", mode="die")
    options = ["--engine", "canned,other", "--no-search", "--streams", "12"]
    record, details, said = run(model, tmp_path, capsys, *options, code=ExitCode.BROKEN_SETUP)
    assert record["partial"]
    assert "the tenth request was too much" in said
    assert "exit code 3" in details.ended_by
    assert {one.engine for one in details.runs} == {"canned"}


def test_ctrl_c_keeps_what_was_measured(model, tmp_path, capsys, front_ends, monkeypatch):
    front_ends()
    real = one_engine.run_window
    runs = []

    def run_window(*arguments):
        runs.append(arguments)
        if len(runs) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(one_engine, "run_window", run_window)
    record, details, _ = run(model, tmp_path, capsys, code=ExitCode.INTERRUPTED)
    assert record["partial"]
    assert details.ended_by == "Ctrl-C"
    assert len(details.runs) == 1


@pytest.mark.parametrize(
    ("mode", "options", "code", "says"),
    [
        ("", ["--engine", "caned"], ExitCode.USAGE, "did you mean 'canned'?"),
        ("", ["--model", "nowhere"], ExitCode.USAGE, "no folder nowhere"),
        ("", ["--t-step", "5"], ExitCode.USAGE, "not a duration"),
        ("", ["--engine-python", "other=x"], ExitCode.USAGE, "not one of the engines"),
        ("", ["--engine-python", "nowhere"], ExitCode.BROKEN_SETUP, "no interpreter"),
        ("absent", [], ExitCode.BROKEN_SETUP, "there is no canned engine"),
        ("broken", [], ExitCode.BROKEN_SETUP, "no such parser"),
        ("die", ["--streams", "30"], ExitCode.BROKEN_SETUP, "the tenth request"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(
    model, tmp_path, capsys, front_ends, mode, options, code, says
):
    front_ends(mode=mode)
    arguments = ["frontend", "--engine", "canned", "--quick", "--streams", "12"]
    assert main([*arguments, "--model", str(model), "--out", str(tmp_path), *options]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
