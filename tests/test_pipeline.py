"""``detokbench pipeline`` end to end: real processes, tiny settings. No time decides a test."""

import json
import os
import signal
from io import StringIO
from pathlib import Path

import msgspec
import psutil
import pytest
from rich.console import Console

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.interrupts import SIGNALS, take_first_interrupt
from detokbench.live.plan import Done
from detokbench.live.supervise import Supervisor
from detokbench.live.topology import ENGINE
from detokbench.records.pipeline import PipelineDetails
from detokbench.records.store import read_record
from detokbench.report.pipeline_screen import print_pipeline

REFERENCE = Path(__file__).parent.parent / "results" / "reference"
TINY = ["--t-step", "2ms", "--duration", "500ms", "--max-tokens", "24", "--json"]


class Watched:
    """The supervisors of a test: their processes and folders, to see that nothing is left."""

    def __init__(self):
        self.pids = []
        self.folders = []

    def nothing_is_left(self):
        return not any(map(psutil.pid_exists, self.pids)) and not any(
            Path(folder).exists() for folder in self.folders
        )


@pytest.fixture
def watched(monkeypatch):
    seen = Watched()
    enter = Supervisor.__enter__

    def watch(supervisor):
        enter(supervisor)
        seen.pids += supervisor.pids.values()
        seen.folders.append(supervisor.folder)
        return supervisor

    monkeypatch.setattr(Supervisor, "__enter__", watch)
    yield seen
    assert seen.pids
    assert seen.nothing_is_left()


def run(tmp_path, capsys, *options, code=ExitCode.OK):
    """The record and what was said on standard error."""
    batch = [] if "--ramp" in options else ["--batch", "4"]
    arguments = ["pipeline", *batch, *TINY, "--no-chart", "--out", str(tmp_path), *options]
    assert main(arguments) == code
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    return record, msgspec.convert(record["details"], PipelineDetails), printed.err


def everything_arrived(details):
    (facts,) = details.runs
    assert 0 < facts.steps <= 250
    assert facts.ids == facts.steps * 4
    assert facts.finished > 8
    assert facts.checked >= facts.finished - 8
    assert (facts.wrong, facts.first_difference) == (0, "")
    last = facts.series[-1]
    assert (last.waiting, last.undelivered) == (0, 0)
    assert [process.states_left for process in facts.processes] == [0] * len(facts.processes)
    return facts


def test_vllm_without_http(tmp_path, capsys, watched):
    record, details, _ = run(tmp_path, capsys, "--no-http", "--chunk-size", "3")
    facts = everything_arrived(details)
    assert [process.name for process in facts.processes] == ["engine", "front-end"]
    names = {hop.name for hop in facts.hops}
    assert names == {"front-end received", "front-end decoded", "front-end read"}
    assert facts.itl.count > 100
    assert facts.rows_per_step == pytest.approx(4, abs=0.1)
    assert 0 < facts.steps_share <= 1
    assert facts.busiest_cpu_share > 0
    assert {row["metric"] for row in record["rows"]} == {
        "itl", "chunk_gap", "chunks_per_token", "lag"
    }  # fmt: skip
    assert details.self_test is None


def test_sglang_without_http_with_several_processes(tmp_path, capsys, watched):
    options = ["--topology", "sglang", "--frontends", "2", "--detokenizers", "2", "--no-http"]
    _, details, _ = run(tmp_path, capsys, *options)
    facts = everything_arrived(details)
    assert len(facts.processes) == 5
    decoded = [p.ids for p in facts.processes if p.name.startswith("detokenizer")]
    assert sum(decoded) == facts.ids
    assert {p.ids for p in facts.processes if not p.name.startswith("detokenizer")} == {None}
    assert facts.chunks_per_token == pytest.approx(1, abs=0.5)


def test_vllm_over_http_with_a_stop_that_travels_back(tmp_path, capsys, watched):
    _, details, _ = run(tmp_path, capsys, "--stop", " the", "--frontends", "2")
    (facts,) = details.runs
    assert facts.aborted > 0
    assert facts.checked > 4
    assert facts.wrong == 0
    assert {process.states_left for process in facts.processes} == {0}
    assert "clients" in {hop.name for hop in facts.hops}
    assert details.self_test.events_per_s > details.self_test.reads_per_s > 0
    assert facts.client_share is not None


def test_sglang_over_http_with_a_stop_that_the_scheduler_finds(tmp_path, capsys, watched):
    options = ["--topology", "sglang", "--stop", " the", "--stream-interval", "3"]
    _, details, _ = run(tmp_path, capsys, *options)
    (facts,) = details.runs
    assert facts.aborted == 0
    assert facts.finished > 8
    assert facts.check_s_per_step > 0
    assert facts.checked > 4
    assert facts.wrong == 0
    assert {process.states_left for process in facts.processes} == {0}


def test_text_that_a_path_corrupts_is_told(tmp_path, capsys, watched):
    options = ["--no-http", "--path", "naive", "--scenario", "llama3-multilingual"]
    _, details, _ = run(tmp_path, capsys, *options)
    assert details.runs[0].wrong > 0
    assert "request" in details.runs[0].first_difference


def test_poisson_arrivals(tmp_path, capsys, watched):
    options = ["--no-http", "--arrival", "poisson", "--rate", "200"]
    _, details, _ = run(tmp_path, capsys, *options)
    (facts,) = details.runs
    assert 50 < facts.requests < 200
    assert facts.wrong == 0
    assert 0 < facts.rows_per_step <= 4.01


def once_the_engine_runs(monkeypatch, do):
    """Do something while the supervisor waits for the end of the run, after the first steps."""
    wait = Supervisor.wait_for
    done = []

    def wait_for(self, name, kind, *rest, **options):
        if rest[:1] == (Done,) and name == ENGINE and not done:
            while not any(sample.steps for sample in self.samples[ENGINE]):
                self._take(60, ENGINE)
            done.append(True)
            do(self)
        return wait(self, name, kind, *rest, **options)

    monkeypatch.setattr(Supervisor, "wait_for", wait_for)


@pytest.mark.parametrize("victim", ["front-end", "engine"])
def test_a_process_that_is_killed_is_named_and_the_rest_is_kept(
    tmp_path, capsys, watched, monkeypatch, victim
):
    once_the_engine_runs(
        monkeypatch, lambda supervisor: os.kill(supervisor.pids[victim], signal.SIGKILL)
    )
    options = ["--no-http", "--duration", "60s"]
    record, details, said = run(tmp_path, capsys, *options, code=ExitCode.BROKEN_SETUP)
    assert f"the process '{victim}' died (signal 9)" in said
    assert record["partial"]
    assert victim in details.ended_by
    assert details.runs[0].ids > 0
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_ctrl_c_keeps_what_was_measured(tmp_path, capsys, watched, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    once_the_engine_runs(monkeypatch, interrupt)
    record, details, _ = run(
        tmp_path, capsys, "--duration", "60s", "--topology", "sglang", code=ExitCode.INTERRUPTED
    )
    assert record["partial"]
    assert details.ended_by == "Ctrl-C"
    (facts,) = details.runs
    assert 0 < facts.steps < 30_000
    assert facts.ids >= facts.steps
    assert {process.states_left for process in facts.processes} == {0}


def test_more_ctrl_c_while_the_processes_end_loses_nothing(tmp_path, capsys, watched, monkeypatch):
    def interrupt(*_, **__):
        signal.raise_signal(signal.SIGINT)

    def interrupted(method):
        return lambda *given: (interrupt(), method(*given), interrupt())[1]

    once_the_engine_runs(monkeypatch, interrupt)
    for name in ("settle", "stop", "__exit__"):
        monkeypatch.setattr(Supervisor, name, interrupted(getattr(Supervisor, name)))
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    take_first_interrupt()
    try:
        options = ["--no-http", "--duration", "60s"]
        record, details, _ = run(tmp_path, capsys, *options, code=ExitCode.INTERRUPTED)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert record["partial"]
    assert details.ended_by == "Ctrl-C"
    assert details.runs[0].steps > 0


def test_a_ramp_finds_the_batch_where_a_made_up_host_breaks(tmp_path, capsys, watched, monkeypatch):
    from detokbench.live import ramp

    real = ramp.run_facts

    def run_facts(answers, asked, of):
        facts = real(answers, asked, of)
        facts.broken = "made up" if facts.batch >= 6 else ""
        facts.not_judged = "others" if facts.batch == 2 else ""
        return facts

    monkeypatch.setattr(ramp, "run_facts", run_facts)
    monkeypatch.setattr("detokbench.live.prediction._WIRE_S", 0.3)
    monkeypatch.setattr("detokbench.live.prediction._PART_S", 0.05)
    options = ["--no-http", "--ramp", "2,4,8", "--duration", "100ms", "--stop", "</answer>"]
    _, details, _ = run(tmp_path, capsys, *options)
    assert (details.live_low, details.live_high, details.live_batch) == (5, 6, 5.5)
    walked = [run.batch for run in details.runs if run.of == "walk"]
    assert walked == [2, 2, 2, 4, 8, 8]
    assert [run.batch for run in details.runs if run.of == "depth"] == [4, 6, 7]
    parts = {(part.process, part.part) for part in details.prediction.parts}
    assert parts == {
        ("engine", "emission"), ("front-end", "wire"), ("front-end", "decode"),
        ("front-end", "stop"), ("front-end", "queue"),
    }  # fmt: skip
    assert details.prediction.batches == [8, 16]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--topology", "vlm"], ExitCode.USAGE, "did you mean 'vllm'?"),
        (["--rate", "5"], ExitCode.USAGE, "--rate needs poisson"),
        (["--arrival", "poisson"], ExitCode.USAGE, "needs --rate"),
        (
            ["--arrival", "poisson", "--rate", "1e6", "--duration", "2s"],
            ExitCode.USAGE,
            "more than 1,000,000 arrivals",
        ),
        (["--duration", "1e300s"], ExitCode.USAGE, "at most a day"),
        (["--detokenizers", "2"], ExitCode.USAGE, "--detokenizers is for --topology sglang"),
        (["--path", "fast,slow"], ExitCode.USAGE, "has one path"),
        (["--ramp", "1..4", "--batch", "4"], ExitCode.USAGE, "in place of --batch"),
        (["--topology", "sglang", "--chunk-size", "8"], ExitCode.USAGE, "for --topology vllm"),
        (["--duration", "80ms", "--t-step", "1ms"], ExitCode.USAGE, "at least 100 ms"),
        (["--duration", "1s", "--t-step", "60ms"], ExitCode.USAGE, "at least 1.2 s"),
        (["--t-step", "1s"], ExitCode.USAGE, "at least 20 s"),
        (["--stop", ""], ExitCode.USAGE, "stop"),
        (["--batch", "16000k"], ExitCode.BROKEN_SETUP, "memory are free"),
        (["--batch", "1000k", "--max-tokens", "1"], ExitCode.BROKEN_SETUP, ""),
        (["--path", "fast", "--vocab", "tekken"], ExitCode.BROKEN_SETUP, "DecodeStream"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(tmp_path, capsys, options, code, says):
    assert main(["pipeline", "--out", str(tmp_path), *options]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_record_is_shown_and_drawn_from_its_file(tmp_path, capsys, watched):
    run(tmp_path, capsys, "--no-http")
    (path,) = tmp_path.glob("*.json")
    assert main(["show", str(path)]) == ExitCode.OK
    screen = capsys.readouterr().out
    for part in ("ITL a token", "front-end", "chunks a token", "sampled requests"):
        assert part in screen
    assert main(["plot", str(path)]) == ExitCode.OK
    assert path.with_suffix(".png").stat().st_size > 10_000


def test_a_partial_record_without_an_answer_of_the_engine_has_a_screen():
    record = read_record(REFERENCE / "pipeline-batch-decode-stop.json")
    run = record.details["runs"][0]
    run.update(duration_s=0.0, window_s=0.0, steps=0, late_steps=0, ids=0, processes=[], series=[])
    run.update(chunks_per_token=None, typical_chunks_per_token=None, broken="", hops=[])
    record.details.update(runs=[run], prediction=None, ended_by="the process 'engine' died")
    record.partial = True
    assert "nothing is known: the engine did not answer" in _screen(record)


@pytest.mark.parametrize("rate", ["inf", "nan", "1e9", "1e-300", "0", "-1"])
def test_a_rate_that_no_stream_can_have_is_refused(tmp_path, capsys, rate):
    options = ["--arrival", "poisson", "--rate", rate, "--out", str(tmp_path)]
    assert main(["pipeline", *options]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert said.startswith("detokbench: --rate: ")
    assert said.count("\n") == 1


def _screen(record) -> str:
    out = StringIO()
    print_pipeline(record, Console(file=out, width=200))
    return out.getvalue()


def test_late_steps_are_laid_to_others_only_where_the_runs_own_processes_left_the_cpu():
    record = read_record(REFERENCE / "pipeline-batch-decode-stop.json")
    assert max(run["late_steps"] / run["steps"] for run in record.details["runs"]) > 0.9
    assert "something else runs" not in _screen(record)
    for run in record.details["runs"]:
        for process in run["processes"]:
            process["cpu_share"] = 0.1
    assert "something else runs" in _screen(record)
