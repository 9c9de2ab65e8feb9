"""The command ``verify``: what it runs, what it stores, and its exit codes."""

import json
import os
import subprocess
import sys

import pytest

from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.records.store import read_record
from detokbench.records.verify import verify_details
from detokbench.verify.case_results import warnings_about
from detokbench.verify.laws import SINGLE_STREAM_LAWS, Law
from detokbench.verify.run import judge_tasks, run_tasks
from detokbench.verify.wanted import required_paths, wanted_from
from detokbench.workload.cases import shipped_cases
from tests import third_party
from tests.streaming import assert_error, vocabulary

SPM = "mistral-spm-fast"

OWN_CASE = """
[[case]]
name = "mine"
title = "Two words"
vocabulary = "mistral-spm-fast"
output = [22557, 1526]
[case.expect]
text = {text}
"""


def verify(tmp_path, *arguments):
    """Run the command; its exit code and the details of the record that it stored."""
    out = tmp_path / "out"
    code = main(["verify", *arguments, "--out", str(out), "--no-chart", "--jobs", "1"])
    stored = list(out.glob("*.json"))
    return code, verify_details(read_record(stored[0])) if stored else None


def test_random_streams_break_engines_paths_and_not_the_cure(tmp_path, capsys):
    code, details = verify(tmp_path, "slow", "fast", "byte-table", "--vocab", SPM, "--fuzz", "120")
    assert code == ExitCode.OK
    assert details.streams == details.fuzz == 120
    verdicts = {(cell.path, cell.law): cell.verdict for cell in details.cells}
    assert verdicts["slow", Law.COMPLETE] == "differs"
    assert {verdicts["byte-table", law] for law in SINGLE_STREAM_LAWS} == {"pass"}
    assert details.required == ["byte-table"]
    for difference in details.differences:
        assert difference.seen
        assert "byte-table" not in {seen.path for seen in difference.seen}
    screen = capsys.readouterr().out
    assert "byte-table" in screen and "complete" in screen


def test_a_path_that_is_required_and_wrong_fails_the_run(tmp_path):
    arguments = ("slow", "--vocab", SPM, "--fuzz", "60", "--laws", "complete,bytes")
    code, details = verify(tmp_path, *arguments)
    assert code == ExitCode.OK
    assert {cell.law for cell in details.cells} == {"complete", "bytes"}
    code, details = verify(tmp_path / "again", *arguments, "--require", "slow")
    assert code == ExitCode.FAILED_CHECK
    assert details.required == ["slow"]


@pytest.mark.parametrize(("text", "code"), [('"Hello world"', 0), ('"Hello"', 1)])
def test_cases_of_the_users_own(tmp_path, text, code):
    file = tmp_path / "mine.toml"
    file.write_text(OWN_CASE.format(text=text))
    got, details = verify(tmp_path, "byte-table", "fast", "--cases", str(file))
    assert got == code
    assert {case.case for case in details.cases} == {"mine"}
    verdict = "differs" if code else "pass"
    assert {case.path: case.verdict for case in details.cases} == {
        "byte-table": verdict,
        "fast": verdict,
    }


def test_a_stop_that_cannot_match_is_warned_of_by_case_and_name(tmp_path, capsys):
    """E8; the shipped case says that it does not match, so that nothing is warned of."""
    file = tmp_path / "mine.toml"
    stop = OWN_CASE.format(text="'Hello'").replace("[22557, 1526]", "[22557, 2]\nstop = ['</s>']")
    file.write_text(stop)
    code, _ = verify(tmp_path, "byte-table", "--cases", str(file), "--laws", "stops")
    assert code == ExitCode.OK
    says = "! case mine: stop '</s>' is the special token '</s>': it cannot match where"
    assert says in capsys.readouterr().out
    file.write_text(f"{stop}stop = false\n")
    verify(tmp_path / "again", "byte-table", "--cases", str(file), "--laws", "stops")
    assert "\n! " not in capsys.readouterr().out
    for case in shipped_cases():
        assert warnings_about(case, vocabulary(case.vocabulary)) == []


def test_a_case_that_came_out_otherwise_says_what_was_expected(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(OWN_CASE.format(text="'Hello'"))
    verify(tmp_path, "byte-table", "--cases", str(file), "--laws", "bytes")
    assert "expected 'Hello', got 'Hello world'" in capsys.readouterr().out


def test_a_stop_id_of_zero_is_a_stop(tmp_path):
    file = tmp_path / "mine.toml"
    case = OWN_CASE.format(text="'Hello'").replace("1526]", "0, 1526]\nstop_ids = [0]")
    for expected, verdict, code in (("0", "pass", 0), ("false", "differs", 1)):
        file.write_text(f"{case}stop = {expected}\n")
        out = tmp_path / expected
        got, details = verify(out, "byte-table", "--cases", str(file), "--laws", "stops")
        assert (got, [result.verdict for result in details.cases]) == (code, [verdict])


def test_a_malformed_case_file_is_refused_with_its_line(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(OWN_CASE.format(text="3"))
    code, details = verify(tmp_path, "--cases", str(file))
    assert (code, details) == (ExitCode.USAGE, None)
    error = capsys.readouterr().err
    assert "mine.toml, line 8" in error and "text" in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["slw"], "did you mean 'slow'"),
        (["slow", "--require", "fast"], "--require: 'fast'"),
        (["--laws", "byts"], "did you mean 'bytes'"),
        (["--vocab", "lama-3"], "did you mean 'llama-3'"),
        (["--fuzz", "0"], "--fuzz"),
        (["--cases", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_usage_errors(tmp_path, capsys, arguments, says):
    code, _ = verify(tmp_path, *arguments)
    assert code == ExitCode.USAGE
    captured = capsys.readouterr()
    assert says in captured.err
    assert not captured.out


def test_json_is_the_record(tmp_path, capsys):
    code, _ = verify(tmp_path, "byte-table", "--vocab", SPM, "--fuzz", "5", "--json")
    assert code == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["kind"] == "verify"


def test_the_rows_and_work_laws_alone_run_no_streams(tmp_path):
    code, details = verify(tmp_path, "batch-decode", "--vocab", SPM, "--laws", "rows,work")
    assert code == ExitCode.OK
    assert details.streams == 0
    verdicts = {cell.law: cell.verdict for cell in details.cells}
    assert verdicts == {"rows": "differs", "work": "differs"}
    (lost,) = (d for d in details.differences if "rows" in d.seen[0].laws)
    assert lost.input.rows > 1 << 16  # the state table drops the oldest in silence


def test_a_path_of_a_third_party_that_dies_is_an_error_with_a_code(tmp_path):
    environment = third_party.install(tmp_path, "dying", "import os; os._exit(3)")
    run = subprocess.run(
        [sys.executable, "-m", "detokbench", "verify", "dying", "--vocab", SPM, "--fuzz", "5"],
        env={**environment, "COLUMNS": "100"}, cwd=tmp_path, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    assert run.returncode == ExitCode.BROKEN_SETUP
    assert "a worker process died" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_vocabulary_without_bytes_cannot_be_judged(tmp_path, capsys):
    from tokenizers import Tokenizer, decoders, models

    words = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]"))
    words.decoder = decoders.WordPiece()
    words.save(str(tmp_path / "words.json"))
    code, _ = verify(tmp_path, "byte-table", "--vocab", str(tmp_path / "words.json"))
    assert code == ExitCode.BROKEN_SETUP
    assert "has no bytes to judge texts by" in capsys.readouterr().err


def test_a_vocabulary_by_its_path_is_shown_by_its_name(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    vocabulary(SPM).rust.save(str(folder / "tokenizer.json"))
    path = str(folder / "tokenizer.json")
    code, details = verify(tmp_path, "byte-table", "slow", "--vocab", path, "--fuzz", "20")
    assert code == ExitCode.OK
    assert {cell.vocab for cell in details.cells} == {"mine"}
    assert {difference.input.vocab for difference in details.differences} == {"mine"}


class TestWanted:
    def wanted(self, **changes):
        given = {
            "paths": ("slow",), "vocabularies": [], "case_files": [], "fuzz": None, "laws": [],
            "seed": 0, "trust_remote_code": False,
        }  # fmt: skip
        return wanted_from(**{**given, **changes})

    def test_by_default_everything_that_is_shipped(self):
        wanted = self.wanted()
        assert wanted.texts and wanted.fuzz
        assert len(wanted.cases) == len(shipped_cases())
        assert len(wanted.vocabularies) == 5
        assert wanted.laws == frozenset(Law)

    def test_random_streams_take_the_place_of_texts_and_cases(self):
        wanted = self.wanted(fuzz=10)
        assert not wanted.texts and not wanted.cases

    @pytest.mark.parametrize("fuzz", [1, 3, 7, 2500, 2501, 10_003])
    def test_random_streams_are_dealt_to_vocabularies_each_once(self, fuzz):
        wanted = self.wanted(fuzz=fuzz, vocabularies=["llama-3", "tekken"], laws=[Law.BYTES])
        tasks = list(judge_tasks(wanted))
        assert sum(len(task.numbers) for task in tasks) == fuzz
        for name in ("llama-3", "tekken"):
            numbers = [n for task in tasks if task.vocabulary == name for n in task.numbers]
            assert numbers == list(range(len(numbers)))

    def test_only_paths_that_are_run_can_be_required(self):
        assert required_paths(["slow", "byte-table"], ["slow"]) == ("byte-table", "slow")
        assert required_paths(["slow"], []) == ()
        with pytest.raises(DetokbenchError) as caught:
            required_paths(["slow"], ["fast"])
        assert_error(caught, ExitCode.USAGE, "fast")


def test_ctrl_c_before_anything_has_come_back_stores_nothing(tmp_path):
    import signal
    import time

    run = subprocess.Popen(
        [sys.executable, "-m", "detokbench", "verify", "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    time.sleep(1.5)
    run.send_signal(signal.SIGINT)
    _, error = run.communicate(timeout=60)
    assert run.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in error


def test_the_record_does_not_depend_on_which_process_was_faster(monkeypatch):
    wanted = wanted_from(
        paths=("slow", "row-decode", "byte-table"), vocabularies=[SPM], case_files=[], fuzz=1100,
        laws=[law for law in Law if law not in {Law.ROWS, Law.WORK}], seed=5,
        trust_remote_code=False,
    )  # fmt: skip

    def collected(turn):
        def answers(pool, work, tasks):
            done = [(task, work(task)) for task in tasks]
            yield from turn(done)

        monkeypatch.setattr("detokbench.verify.run.answers", answers)
        found = run_tasks(wanted, 1, lambda what, share: None)
        return found.tallies, found.differences, found.left_out

    assert collected(list) == collected(lambda done: list(reversed(done)))


def save_letters(file, letters):
    """A byte-level tokenizer.json that spells these letters one by one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocab={c: 3 * i for i, c in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    file.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(file))
    return str(file)


@pytest.mark.parametrize("letters", ["a", "".join(chr(i) for i in range(33, 127)) + "ĠĊ"])
def test_a_vocabulary_of_single_letters_with_gaps_between_its_ids(tmp_path, letters):
    file = save_letters(tmp_path / "letters" / "tokenizer.json", letters)
    code, details = verify(tmp_path, "slow", "batch-decode", "byte-table", "--vocab", file)
    assert code == ExitCode.OK
    verdicts = {cell.law: cell.verdict for cell in details.cells if cell.path == "byte-table"}
    assert "differs" not in verdicts.values() and verdicts["bytes"] == "pass"


def test_a_vocabulary_without_ids_cannot_be_judged(tmp_path, capsys):
    file = save_letters(tmp_path / "none" / "tokenizer.json", "")
    code, _ = verify(tmp_path, "byte-table", "--vocab", file, "--fuzz", "3")
    assert code == ExitCode.BROKEN_SETUP
    assert "has no id with any text" in capsys.readouterr().err


def test_two_vocabularies_of_one_name_are_not_mixed(tmp_path, capsys):
    files = [save_letters(tmp_path / part / "m" / "tokenizer.json", "ab") for part in "xy"]
    code, _ = verify(tmp_path, "byte-table", "--vocab", files[0], "--vocab", files[1])
    assert code == ExitCode.USAGE
    assert "two vocabularies are called 'm'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--vocab", "llama-3"], "none of them is on llama-3; the first is on mistral-spm-fast"),
        (["--laws", "rows"], "--cases: rows are not judged by single streams"),
    ],
)
def test_cases_that_would_not_run_are_refused(tmp_path, capsys, arguments, says):
    file = tmp_path / "mine.toml"
    file.write_text(OWN_CASE.format(text='"Hello world"'))
    assert verify(tmp_path, "--cases", str(file), *arguments)[0] == ExitCode.USAGE
    assert says in capsys.readouterr().err


def test_a_required_path_that_nothing_judges_has_not_passed(tmp_path):
    arguments = ["fast", "--require", "fast", "--vocab", "mistral-spm", "--fuzz", "3"]
    code, details = verify(tmp_path, *arguments, "--laws", "bytes")
    assert code == ExitCode.NOTHING_TO_COMPARE
    assert {cell.verdict for cell in details.cells} == {"n/a"}
