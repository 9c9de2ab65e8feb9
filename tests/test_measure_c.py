"""``measure-c`` from the command line to the files, on small runs; no timing decides anything."""

import json
import signal
import subprocess
import sys

import pytest
import third_party

from detokbench.bench.manager import Manager
from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.records.store import read_record

SMALL = ["--batch", "1,2", "--quick"]
WRONG_STEP = "return [self.decode(ids) + '!' for ids in new_ids]"


def run(*arguments, env=None, **options):
    return subprocess.run(
        [sys.executable, "-m", "detokbench", "measure-c", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        timeout=100,
        **options,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run in a folder of its own: what it printed, and the folder."""
    folder = tmp_path_factory.mktemp("run")
    done = run("--paths", "naive,fast,rust-batch,byte-table", *SMALL, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, folder


@pytest.fixture(scope="module")
def record(finished):
    return read_record(next((finished[1] / "results").glob("*.json")))


def test_record_and_charts_are_stored_under_results(finished):
    names = sorted(path.suffix for path in (finished[1] / "results").iterdir())
    assert names == [".json", ".png", ".svg"]


def test_the_screen_shows_every_path_and_reads_the_numbers(finished):
    printed = finished[0].stdout
    for expected in (
        "llama-3: 128,256 ids, Rust",
        "naive *",
        "fast",
        "byte-table",
        "Gate: 20 texts",
    ):
        assert expected in " ".join(printed.split())
    assert "too few processes for intervals" in " ".join(printed.split())


def test_rows_have_all_metrics_and_one_sample_a_process(record):
    assert {row.metric for row in record.rows} == {
        "floor", "per_token", "call", "admit", "first_token",
    }  # fmt: skip
    assert all(len(row.samples) == len(record.processes) == 2 for row in record.rows)
    assert all(row.unit == "s" and row.median is not None for row in record.rows)
    assert not any(row.path == "byte-table" and row.metric == "call" for row in record.rows)


def test_naive_is_timed_and_marked(record):
    verdicts = {result.path: result.verdict for result in record.gate}
    assert verdicts == {
        "naive": "expected",
        "fast": "pass",
        "rust-batch": "pass",
        "byte-table": "pass",
    }
    assert {row.gate for row in record.rows if row.path == "naive"} == {"expected"}


def test_every_sample_is_kept_with_its_warm_up(record):
    for process in record.processes:
        assert process.clock_floor_ns > 0
        for cell in process.cells:
            assert cell.warmup_ns > 0
            assert all(times and units > 0 for _, units, times in cell.points)


def test_each_process_measured_in_an_order_of_its_own(record):
    orders = [[(c.path, c.metric, c.batch) for c in p.cells] for p in record.processes]
    assert sorted(map(str, orders[0])) == sorted(map(str, orders[1]))
    assert orders[0] != orders[1]


def test_the_record_says_how_it_was_made(record):
    assert record.command[:2] == ["detokbench", "measure-c"]
    assert record.settings["gc"] is False
    assert record.settings["name"] == "quick"
    assert "tokenizers" in record.packages
    assert record.scenario["name"] == "llama3-chat"
    assert not record.partial


def test_json_goes_to_standard_output_and_nothing_else_does(tmp_path):
    done = run(
        "--paths", "byte-table", *SMALL, "--json", "--no-chart", "--out", "r.json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "r.json").read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_a_python_tokenizer_says_what_does_not_apply(tmp_path):
    done = run(
        "--scenario", "mistral-slow", "--paths", "slow,fast,byte-table", *SMALL, cwd=tmp_path
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "n/a fast: DecodeStream needs a Rust tokenizer." in done.stdout


def test_a_path_with_wrong_text_is_left_out_and_ends_in_1(tmp_path):
    env = third_party.install(tmp_path, "shouting", WRONG_STEP)
    done = run("--paths", "shouting,byte-table", *SMALL, "--no-chart", env=env, cwd=tmp_path)
    assert done.returncode == ExitCode.FAILED_CHECK, done.stderr
    assert "! shouting: 20 of 20 texts differ" in " ".join(done.stdout.split())
    record = read_record(next((tmp_path / "results").glob("*.json")))
    assert "shouting" not in {row.path for row in record.rows}


def test_without_the_gate_it_is_timed_and_marked_and_still_ends_in_1(tmp_path):
    env = third_party.install(tmp_path, "shouting", WRONG_STEP)
    done = run("--paths", "shouting", *SMALL, "--no-gate", "--no-chart", env=env, cwd=tmp_path)
    assert done.returncode == ExitCode.FAILED_CHECK, done.stderr
    assert "shouting !" in done.stdout
    record = read_record(next((tmp_path / "results").glob("*.json")))
    assert {row.gate for row in record.rows if row.path == "shouting"} == {"fail"}


def test_a_worker_that_dies_is_said_in_one_line(tmp_path):
    env = third_party.install(tmp_path, "dying", "import os; os._exit(9)")
    done = run("--paths", "dying", *SMALL, env=env, cwd=tmp_path)
    assert done.returncode == ExitCode.BROKEN_SETUP
    assert done.stderr == (
        "detokbench: a worker process died at path 'dying' in the gate (exit code 9)\n"
    )


def test_a_path_that_raises_while_timed_names_its_error(tmp_path):
    step = "return [1 / (list(rows) != [0, 1]) and self.decode(i) for i in new_ids]"
    env = third_party.install(tmp_path, "fragile", step, expected="a test")
    done = run("--paths", "fragile", *SMALL, "--no-chart", env=env, cwd=tmp_path)
    assert done.returncode == ExitCode.BROKEN_SETUP
    assert done.stderr.strip() == (
        "detokbench: path 'fragile' failed while it was set up: ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (DetokbenchError("a worker process died (signal 9)"), ExitCode.BROKEN_SETUP),
    ],
)
def test_an_early_end_keeps_what_was_measured(monkeypatch, tmp_path, capsys, stop, code):
    measure = Manager.measure

    def stop_after_one(self, *arguments):
        for number, answer in enumerate(measure(self, *arguments)):
            if number == 1:
                raise stop
            yield answer

    monkeypatch.setattr(Manager, "measure", stop_after_one)
    monkeypatch.chdir(tmp_path)
    assert main(["measure-c", "--paths", "byte-table", *SMALL, "--no-chart"]) == code
    record = read_record(next((tmp_path / "results").glob("*.json")))
    assert record.partial
    assert len(record.processes) == 1
    assert "partial: 1 of 2 processes finished" in " ".join(capsys.readouterr().out.split())


def test_ctrl_c_ends_at_once_with_130_and_leaves_no_process(tmp_path):
    import psutil

    process = subprocess.Popen(
        [sys.executable, "-m", "detokbench", "measure-c", "--rigorous"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        # A shell's background job, as CI may be, ignores Ctrl-C, and what it starts inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    parent = psutil.Process(process.pid)
    while not (children := parent.children()):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    assert (out, err) == ("", "detokbench: interrupted\n")
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive
