"""``sweep``: what it refuses, what it measures on a small run, and what it makes of a record."""

import io
import json

import msgspec
import pytest
from rich.console import Console

from detokbench.bench.plan import Cell
from detokbench.bench.sweep import sweep_cells
from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.model.check import predict_between
from detokbench.model.sweep import busiest_samples
from detokbench.paths import load_path_class
from detokbench.records.schema import ProcessRun, Record, Row
from detokbench.records.store import read_record, write_record
from detokbench.records.sweep import Sweep, SweepOptions
from detokbench.report.kinds import draw_chart
from detokbench.report.model_check import model_errors
from detokbench.report.sweep_reading import read_sweep, recommend
from detokbench.report.sweep_screen import print_sweep
from detokbench.tstep.curves import Deployment
from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.shapes import find_shape
from detokbench.workload.scenario import load_scenario, override

US = 1e-6
BATCHES = [1, 64, 256, 512]
INTERVALS = [1, 2, 4]
SMALL = ["--batch", "1,2,4", "--context", "128", "--stream-interval", "1,2", "--quick"]
DEPLOYMENT = Deployment(gpu=find_gpu("h100-sxm"), model=find_shape("llama-3-8b"))


def options(**changes):
    fields = {
        "deployment": DEPLOYMENT,
        "contexts": [128, 1024],
        "intervals": INTERVALS,
        "at_batch": 256,
    }
    return SweepOptions(**{**fields, **changes})


def row(path, metric, batch, value, interval=None):
    return Row(
        path=path,
        metric=metric,
        batch=batch,
        median=value,
        ci_low=value,
        ci_high=value,
        mad=0.0,
        samples=[value, value, value],
        vocab="llama-3",
        stream_interval=interval,
    )


def sweep_record(fast_us=1.0, batched_us=5.0, chunk_us=8.0, asked=None, stop=()):
    """Host costs that can be worked out by hand: so many µs a sequence-step."""
    rows = [row("fast", "host_step", b, b * fast_us * US, 1) for b in BATCHES]
    rows += [
        row("batch-decode", "host_step", b, b * (batched_us - 1 + k) / k * US, k)
        for k in INTERVALS
        for b in BATCHES
    ]
    parts = {"object": 1.0, "json-pydantic": chunk_us - 1.5, "json-msgspec": 0.5, "sse-frame": 0.5}
    rows += [row(part, "chunk", 1, value * US) for part, value in parts.items()]
    return Record(
        kind="sweep",
        created="2026-01-02T03:04:05Z",
        command=[],
        detokbench="0.1.0",
        scenario={"name": "s", "stop": list(stop), "batches": BATCHES, "ids_per_step": 1},
        vocabulary={"name": "llama-3"},
        settings={"processes": 3, "processes_finished": 3},
        machine={"cpu": "a CPU", "cpus_usable": 2, "python": "CPython 3.11"},
        packages={"tokenizers": "0.23", "transformers": "5.24"},
        rows=rows,
        details={"options": msgspec.to_builtins(asked or options())},
        processes=[ProcessRun(cpu=0, clock_floor_ns=40, seconds=1.0, cells=[])] * 3,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch", "32"], "two batches or more"),
        (["--t-step", "0ms"], "must be longer than zero"),
        (["--t-step", "4.48"], "a number and a unit"),
        (["--gpu", "h100-sxn"], "did you mean 'h100-sxm'?"),
        (["--model", "llama-4"], "unknown model 'llama-4'"),
        (["--weights", "fp4"], "none of bf16, fp8, int4"),
        (["--derate", "0"], "derate 0"),
        (["--tp", "3"], "tp 3 does not divide"),
        (["--context", "1000k"], "do not fit into the 80 GB"),
        (["--model", "llama-3-70b"], "do not fit into the 80 GB"),
        (["--t-step", "5ms", "--t-step-from", "x.json"], "exclude each other"),
        (["--t-step-from", "none.json"], "cannot read the record none.json"),
        (["--resume", "none.json"], "cannot read the record none.json"),
        (["--stop", ""], "empty stop string"),
        (["--at", "100"], "--at: 100 is not among the batches"),
        (["--batch", "1,2", "--check-model"], "--check-model needs 3 batches"),
        (["--assume-c", "10us", "--json"], "--assume-c measures and stores nothing"),
        (["--paths", "fats"], "did you mean 'fast'?"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_measured(
    capsys, monkeypatch, tmp_path, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments]) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_chapters_table_comes_from_the_same_code(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["sweep", "--assume-c", "10us"]) == 0
    lines = {
        line.split()[0]: line.split()
        for line in capsys.readouterr().out.splitlines()
        if line.split()
    }
    assert lines["slow"][1:4] == ["512", "5.12", "224"]
    assert lines["fast"][1:4] == ["256", "2.56", "448"]
    assert lines["batch-decode"][1] == "2"
    assert lines["tail_str"][1:6] == ["up", "to", "512", "5.12", "224"]


def test_an_assumed_call_never_crosses_the_roofline_where_the_gpu_grows_faster(capsys):
    main(["sweep", "--assume-c", "10us", "--context", "0"])
    fast = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(" fast"))
    assert fast.split()[-1] == "never"


def test_intervals_are_measured_where_they_spare_decoding():
    scenario = override(load_scenario("llama3-chat")[0], batches=[1, 2])
    classes = [load_path_class("fast"), load_path_class("batch-decode")]
    cells = sweep_cells(classes, scenario, options(logprobs=[5]), cpus=[0, 1])
    steps = [cell for cell in cells if cell.metric == "host_step"]
    assert {cell.stream_interval for cell in steps if cell.path == "fast"} == {1}
    assert {cell.stream_interval for cell in steps if cell.path == "batch-decode"} == {1, 2, 4}
    assert Cell(path="logprobs-5", metric="logprobs", batch=1, alternatives=5) in cells


def test_a_small_sweep_end_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    paths = ["--paths", "fast,batch-decode", "--stop", "</answer>", "--logprobs", "5"]
    assert main(["sweep", *SMALL, *paths, "--check-model"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for expected in ("B*, host late above", "27", "A chunk (measured)", "To do at B = 4"):
        assert expected in printed
    record = read_record(next((tmp_path / "results").glob("*.json")))
    assert {r.metric for r in record.rows} == {"host_step", "chunk", "logprobs", "both_checks"}
    assert all(r.median and len(r.samples) == 2 for r in record.rows)
    assert sorted(p.suffix for p in (tmp_path / "results").iterdir()) == [".json", ".png", ".svg"]


def test_an_interrupted_sweep_is_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = [*SMALL, "--paths", "byte-table", "--no-chart"]
    assert main(["sweep", *small, "--out", "whole.json"]) == 0
    whole = read_record(tmp_path / "whole.json")
    partial = msgspec.structs.replace(whole, partial=True, processes=whole.processes[:1])
    write_record(partial, tmp_path / "partial.json")
    resume = ["--resume", "partial.json", "--out", "done.json", "--json"]
    assert main(["sweep", *small, *resume]) == 0
    done = read_record(tmp_path / "done.json")
    assert done.processes[0] == whole.processes[0]
    assert len(done.processes) == 2
    assert not done.partial
    capsys.readouterr()
    for arguments, message in (
        ([*small, "--resume", "whole.json"], "nothing is missing"),
        ([*small, "--ids-per-step", "2", "--resume", "partial.json"], "asked something else"),
    ):
        assert main(["sweep", *arguments]) == ExitCode.USAGE
        assert message in capsys.readouterr().err


def test_json_is_the_record(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = [*SMALL, "--paths", "byte-table", "--no-chart", "--json", "--out", "r.json"]
    assert main(["sweep", *arguments, "--stop", "<|eot_id|>"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "r.json").read_text())
    assert any("'<|eot_id|>': it cannot match" in warning for warning in record["warnings"])


def test_what_is_warned_of_is_no_markup():
    record = sweep_record()
    record.warnings = ["stop '[/INST]' is the special token '[/INST]'"]
    out = io.StringIO()
    print_sweep(record, Console(file=out, width=100))
    assert "! stop '[/INST]' is the special token '[/INST]'" in out.getvalue()


def crossing(sweep, path, counted, context):
    return next(
        c.found.point
        for c in sweep.crossings()
        if (c.path, c.counted, c.curve.context) == (path, counted, context)
    )


def test_b_star_follows_what_is_counted_and_the_context():
    # The figures of the design: 20 µs crosses at 299 with 128 tokens of context, never with 1k.
    sweep = Sweep(sweep_record(fast_us=10.0, chunk_us=10.0))
    assert crossing(sweep, "fast", "all", 128).text == "299"
    assert crossing(sweep, "fast", "all", 1024).text == "never"
    assert crossing(sweep, "fast", "decode", 128).text == "never"


def test_sglang_counts_its_slower_process():
    sweep = Sweep(sweep_record(batched_us=20.0, chunk_us=10.0))
    assert crossing(sweep, "batch-decode", "all", 128).text == "299"


def test_engines_behind_a_front_end_add_up():
    sweep = Sweep(sweep_record(fast_us=5.0, chunk_us=5.0, asked=options(engines_per_frontend=2)))
    assert crossing(sweep, "fast", "all", 128).text == "299"


def test_fp8_weights_halve_the_weights_time_and_bring_b_star_nearer():
    fp8 = msgspec.structs.replace(DEPLOYMENT, weights="fp8")
    bf16_star = crossing(Sweep(sweep_record(fast_us=20.0)), "fast", "all", 128).batch
    sweep = Sweep(sweep_record(fast_us=20.0, asked=options(deployment=fp8)))
    assert crossing(sweep, "fast", "all", 128).batch < 0.6 * bf16_star


def test_a_given_t_step_is_the_only_source():
    sweep = Sweep(sweep_record(fast_us=2.0, chunk_us=8.0, asked=options(given_s=4.48e-3)))
    assert [(curve.source, curve.context) for curve in sweep.curves] == [("given", None)]
    assert crossing(sweep, "fast", "all", None).text == "448"


def test_a_derated_roofline_has_curves_of_its_own():
    derated = msgspec.structs.replace(DEPLOYMENT, derate=0.8)
    sweep = Sweep(sweep_record(asked=options(deployment=derated)))
    assert [(c.source, c.context) for c in sweep.curves] == [
        ("roofline", 128),
        ("roofline", 1024),
        ("derated", 128),
        ("derated", 1024),
    ]
    assert sweep.curves[2](1) == pytest.approx(sweep.curves[0](1) / 0.8)


def test_measured_steps_are_taken_from_a_record(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    timed = sweep_record()
    timed.kind = "time-step"
    timed.rows = [
        msgspec.structs.replace(row("t-step", "t_step", b, 5e-3 + b * US), context=128)
        for b in (1, 64)
    ]
    write_record(timed, tmp_path / "steps.json")
    arguments = [*SMALL, "--paths", "byte-table", "--no-chart", "--t-step-from", "steps.json"]
    assert main(["sweep", *arguments, "--out", "r.json"]) == 0
    sweep = Sweep(read_record(tmp_path / "r.json"))
    assert [(curve.source, curve.context) for curve in sweep.curves] == [("measured", 128)]
    assert sweep.curves[0](1) == pytest.approx(5.001e-3)
    assert "measured L=128" in " ".join(capsys.readouterr().out.split())


def test_what_keeps_up_needs_no_cure_but_a_whole_front_end_may():
    said = recommend(Sweep(sweep_record()))
    assert said.startswith("To do at B = 256: nothing for the parts measured here.")
    assert "vLLM, Python (27 µs a token, given) needs 2 processes" in said
    roomy = recommend(Sweep(sweep_record(asked=options(given_s=100e-3))))
    assert roomy.startswith("To do at B = 256: nothing: the measured parts keep up")


def test_every_id_of_a_step_has_its_log_probabilities():
    record = sweep_record(chunk_us=8.0, asked=options(logprobs=[5], ids_per_step=4))
    record.rows.append(row("logprobs-5", "logprobs", 1, 10 * US))
    sweep = Sweep(record)
    parts = busiest_samples(sweep.cost("fast"), sweep.sending(), 1, 4)[0]
    assert parts[64] == pytest.approx(64 * (1 + 8 + 4 * 10) * US)


def test_a_process_without_a_value_breaks_nothing():
    record = sweep_record(fast_us=10.0, chunk_us=10.0)
    for disturbed in (record.rows[1], record.rows[-1], record.rows[-4]):
        disturbed.samples[2] = None
    sweep = Sweep(record)
    assert crossing(sweep, "fast", "all", 128).text == "299"
    assert recommend(sweep)


def test_a_damaged_record_is_named(tmp_path, capsys):
    record = sweep_record()
    record.details["options"]["ids_per_step"] = -1
    write_record(record, tmp_path / "bad.json")
    for command in (["show"], ["plot"], ["report", "-o", str(tmp_path / "r.html")]):
        assert main([*command, str(tmp_path / "bad.json")]) == ExitCode.USAGE
        assert "bad.json is damaged" in capsys.readouterr().err


def test_what_is_late_gets_cures_with_their_prices():
    sweep = Sweep(sweep_record(fast_us=10.0, chunk_us=30.0, batched_us=10.0))
    said = recommend(sweep)
    assert "vLLM: a stream interval of 4 (price: text up to 17 ms later)" in said
    assert "2 front-end processes (price: a core each)" in said
    assert "SGLang" in said


def test_the_headroom_is_shown_either_way():
    read = read_sweep(Sweep(sweep_record()))
    assert (
        "vLLM (fast) keeps up at B = 256, L = 128: its busiest host process works 2.30 ms"
        in (read[0])
    )


def test_without_overlap_the_stop_checks_lengthen_the_step():
    record = sweep_record(asked=options(overlap=False), stop=["</answer>"])
    record.rows.append(row("tail-str", "both_checks", 32, 10 * US, 1))
    read = " ".join(read_sweep(Sweep(record)))
    assert "add 2.56 ms to each 5.76 ms step at B = 256, L = 128: a step lasts 8.32 ms" in read


def test_with_overlap_the_scheduler_is_a_process_like_the_others():
    record = sweep_record(batched_us=5.0, chunk_us=5.0, stop=["</answer>"])
    record.rows += [row("tail-str", "both_checks", 32, 20 * US, k) for k in INTERVALS]
    assert crossing(Sweep(record), "batch-decode", "all", 128).text == "299"


def test_the_model_is_exact_where_the_costs_are():
    errors = model_errors(sweep_record())
    assert len(errors["batch-decode"]) == len(BATCHES) * len(INTERVALS) - 3 * 2
    assert max(abs(p.error) for ps in errors.values() for p in ps) < 1e-9


def test_the_model_is_held_against_cells_it_never_saw():
    cells = {(b, 1): b * US for b in (1, 2, 4, 8, 16)}
    cells[2, 1] *= 1.5
    predicted = {(p.batch, p.interval): p.error for p in predict_between(cells)}
    assert set(predicted) == {(2, 1), (8, 1)}
    assert predicted[2, 1] == pytest.approx(1 / 1.5 - 1)


def test_the_chart_is_redone_from_the_record_alone(tmp_path):
    png, svg = draw_chart(sweep_record(), tmp_path / "c.json")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "batch-decode" in svg.read_text()
