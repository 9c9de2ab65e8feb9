"""``detokbench time-step`` from options to files: on paper, on a made-up GPU, on the CPU."""

import io
import json
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.records.store import read_record
from detokbench.records.time_step import details_of
from detokbench.report.charts import spread_apart
from detokbench.report.kinds import draw_chart
from detokbench.report.time_step_reading import read_time_step
from detokbench.report.time_step_screen import print_time_step
from detokbench.report.units import data_size, milliseconds, share, tera
from detokbench.tstep import plan as plan_module
from detokbench.tstep import run as run_module
from detokbench.tstep.device import DeviceFacts
from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.plan import Asked, Plan, Target
from detokbench.tstep.record import build_record
from detokbench.tstep.rows import TimingRow, paper_rows
from detokbench.tstep.shapes import find_shape

LLAMA_8B = find_shape("llama-3-8b")
H100 = find_gpu("h100-sxm")
FACTS = DeviceFacts(
    name="NVIDIA H100 80GB HBM3",
    driver="570.1",
    cuda="12.8",
    torch="2.13.0",
    max_sm_clock_mhz="1980",
    max_memory_clock_mhz="2619",
    power_cap_w="700",
    memory_bytes=85_000_000_000,
    l2_bytes=50 << 20,
)
TINY_CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": 97,
}


class FakeDevice:
    type = "cuda"

    def __str__(self):
        return "cuda:0"


def timed(shape, batches, contexts, *, gpu, copy_bandwidth_bytes_s, **_):
    """Rows as a device would give them: a fifth above the roofline, one point restless."""
    for row in paper_rows(shape, H100, batches, contexts):
        if row.note.startswith("does not fit"):
            yield TimingRow(row.batch, row.context, "measured", None, row.bytes, note="out of")
            continue
        step_s = 1.2 * row.t_step_s
        yield TimingRow(
            row.batch,
            row.context,
            "measured",
            step_s,
            row.bytes,
            samples=(0.999 * step_s, step_s, 1.001 * step_s),
            spread=0.02 if row.batch == 2 else 0.002,
            share_of_copy=row.bytes / step_s / copy_bandwidth_bytes_s,
            share_of_sheet=None if gpu is None else row.bytes / step_s / gpu.bandwidth_bytes_s,
            graph_error=0.0042,
            sm_clock_mhz=1755.0,
        )


@pytest.fixture
def cuda_device(monkeypatch):
    """A machine with an H100, as far as a run can tell; returns a way to change its facts."""

    def use(facts):
        monkeypatch.setattr(plan_module, "device_facts", lambda _: facts)

    monkeypatch.setattr(plan_module, "cuda_available", lambda: True)
    monkeypatch.setattr(plan_module, "resolve_device", lambda _: FakeDevice())
    monkeypatch.setattr(plan_module, "memory_bytes", lambda _: float(FACTS.memory_bytes))
    monkeypatch.setattr(run_module, "measure_copy_bandwidth", lambda _: 3.0e12)
    monkeypatch.setattr(run_module, "measured_rows", timed)
    use(FACTS)
    return use


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run the command; gives its exit code, its outputs and its record, if it stored one."""

    def run_it(*arguments, width=100):
        monkeypatch.setenv("COLUMNS", str(width))
        before = set(tmp_path.glob("*.json"))
        code = main(["time-step", "--out", str(tmp_path), *arguments])
        printed = capsys.readouterr()
        stored = sorted(set(tmp_path.glob("*.json")) - before)
        return code, printed, read_record(stored[0]) if stored else None

    return run_it


def flat(printed):
    """What was printed, without its line breaks."""
    return " ".join(printed.out.split())


def rows_of(record, source):
    return [row for row in record.rows if row.source == source]


# --- on paper ------------------------------------------------------------------------------


@pytest.mark.parametrize(("gpu", "step_ms"), [("h100-sxm", "4.48"), ("h200", "3.13")])
def test_batch_1_without_context(run, gpu, step_ms):
    code, printed, record = run(
        "--device", "none", "--gpu", gpu, "--batch", "1", "--context", "0", "--no-chart"
    )
    assert code == ExitCode.OK
    assert re.search(rf"^\s*1\s+{step_ms} memory", printed.out, re.MULTILINE)
    assert "modelled: roofline" in printed.out
    assert rows_of(record, "roofline")[0].median == pytest.approx(float(step_ms) / 1e3, rel=2e-3)
    assert not rows_of(record, "measured")


def test_the_default_table_with_bounds_memory_and_published_steps(run):
    code, printed, record = run("--device", "none", width=120)
    assert code == ExitCode.OK
    assert "NVIDIA H100 SXM 80 GB: 3.35 TB/s, 989 TFLOP/s" in printed.out
    assert "7.77 compute" in printed.out
    assert "does not fit: 85 GB of 80 GB" in printed.out
    assert "B ≈ 295 at L = 0, and never at L = 1k and 4k" in flat(printed)
    assert "476 at L = 1k and 119 at L = 4k" in flat(printed)
    assert re.search(r"7\.88 +1 +\? +1\.8× +torchao", printed.out)
    assert len(details_of(record.details).published) == 12


def test_the_record_keeps_points_beside_rows_and_what_they_are_made_of(run):
    _, _, record = run("--device", "none", "--derate", "0.8", "--no-chart")
    details = details_of(record.details)
    assert record.kind == "time-step"
    assert len(record.rows) == len(details.points) == 3 * 3 * 10
    assert [row.source for row in record.rows[::30]] == ["roofline", "derated", "memory-only"]
    assert {(row.path, row.metric) for row in record.rows} == {("t-step", "t_step")}
    assert details.gpu["source"] == H100.source
    assert details.model["streamed_params"] == 7_504_924_672
    assert details.model["kv_bytes_per_token"] == 131_072
    assert details.options["derate"] == 0.8
    for row, point in zip(record.rows, details.points, strict=True):
        assert point.fits == (point.memory_needed_bytes <= 80e9)
        assert point.bound == ("compute" if _is_compute(row) else "memory")


def _is_compute(row):
    return row.batch == 512 and row.context == 0 and row.source != "memory-only"


def test_derated_rows_stand_beside_the_roofline_and_are_slower(run):
    _, printed, record = run("--device", "none", "--derate", "0.8", "--batch", "1", "--no-chart")
    assert "derated to 0.8" in printed.out
    assert "5.60" in printed.out
    for fast, slow in zip(rows_of(record, "roofline"), rows_of(record, "derated"), strict=True):
        assert slow.median == pytest.approx(fast.median / 0.8)


def test_published_steps_are_only_shown_where_they_compare(run):
    for arguments in (
        ["--gpu", "h200"],
        ["--tp", "2"],
        ["--weights", "fp8"],
        ["--gpu", "h100-pcie"],
    ):
        _, printed, record = run("--device", "none", "--batch", "1", "--no-chart", *arguments)
        assert not details_of(record.details).published
        assert "torchao" not in printed.out


def test_a_model_that_does_not_fit_is_said_to_need_more_gpus(run):
    paper = ["--device", "none", "--model", "llama-3-70b", "--no-chart"]
    code, printed, _ = run(*paper, width=120)
    assert code == ExitCode.OK
    assert "does not fit: 141 GB of 80 GB" in printed.out
    assert "--tp 2 holds its weights" in printed.out
    _, printed, _ = run(*paper, "--tp", "2")
    assert "2 × NVIDIA H100" in printed.out
    assert "left out" in printed.out


def test_json_is_the_record_and_nothing_else(run):
    code, printed, record = run("--device", "none", "--json", "--no-chart")
    shown = json.loads(printed.out)
    assert code == ExitCode.OK
    assert shown["kind"] == "time-step"
    assert len(shown["rows"]) == len(record.rows)
    assert "record: " in printed.err


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 140])
@pytest.mark.parametrize("arguments", [[], ["--derate", "0.8", "--batch", "1..512:16"]])
def test_no_width_cuts_anything_off(run, width, arguments):
    _, printed, _ = run("--device", "none", "--no-chart", *arguments, width=width)
    assert "…" not in printed.out
    assert "does not fit" in flat(printed)
    assert max(map(len, printed.out.splitlines())) <= width
    assert "L = 4k" in printed.out
    assert "torchao" in printed.out


def test_what_a_narrow_screen_leaves_out_is_named(run):
    contexts = ["--context", "0,128,512,1k,2k,4k,8k"]
    _, printed, _ = run("--device", "none", "--no-chart", *contexts, width=60)
    assert re.search(r"L = [\w, ]+: in the record", flat(printed))


def test_a_chart_beside_the_record_in_both_formats(run, tmp_path):
    run("--device", "none", "--derate", "0.8")
    (png,), (svg,) = tmp_path.glob("*.png"), tmp_path.glob("*.svg")
    assert png.stat().st_size > 20_000
    root = ElementTree.parse(svg).getroot()
    assert root.tag.endswith("svg")
    assert png.stem == svg.stem == next(tmp_path.glob("*.json")).stem


def test_no_chart_where_nothing_fits(run, tmp_path):
    code, _, _ = run("--device", "none", "--model", "llama-3-70b")
    assert code == ExitCode.OK
    assert not list(tmp_path.glob("*.png"))


def test_names_on_a_chart_keep_their_distance_around_their_places():
    assert spread_apart([1.0, 1.0, 5.0], 0.5) == pytest.approx([0.8333, 1.3333, 4.8333], abs=1e-3)
    assert spread_apart([], 1.0) == []


# --- on a made-up CUDA device --------------------------------------------------------------


def test_a_cuda_device_is_timed_beside_its_roofline(run, cuda_device):
    code, printed, record = run("--batch", "1,2,512", "--context", "0,1k")
    details = details_of(record.details)
    assert code == ExitCode.OK
    assert [row.source for row in record.rows[::6]] == ["measured", "roofline", "memory-only"]
    assert details.device["power_cap_w"] == "700"
    assert details.copy_bandwidth_bytes_s == 3.0e12
    assert "measured · NVIDIA H100 80GB HBM3: driver 570.1" in printed.out
    assert re.search(r"93 %\s+83 %\s+0.42%\s+1,755", printed.out)
    assert "1.2× the roofline's 4.48 ms" in flat(printed)
    assert "spread by more than 0.5%" in flat(printed)
    first = record.rows[0]
    # Three samples of one process are too few for an interval.
    assert (len(first.samples), first.ci_low) == (3, None)
    out_of_memory = record.rows[5]
    assert (out_of_memory.median, details.points[5].fits) == (None, False)
    assert "85 GB" in printed.out


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_width_cuts_off_what_was_measured(run, cuda_device, width):
    _, printed, _ = run("--derate", "0.8", "--no-chart", width=width)
    assert "…" not in printed.out
    assert max(map(len, printed.out.splitlines())) <= width
    assert re.search(r"93 %\s+83 %\s+0.42%", printed.out)


def test_the_timed_model_is_never_beside_the_roofline_of_another(run, cuda_device):
    for arguments, reason in (
        (["--gpu", "h200"], "--gpu names another"),
        (["--tp", "2"], "bf16 on one GPU"),
        (["--weights", "fp8"], "bf16 on one GPU"),
        (["--model", "llama-3-70b"], "does not fit"),
    ):
        code, printed, record = run("--batch", "1", "--no-chart", *arguments)
        assert code == ExitCode.OK
        assert not rows_of(record, "measured")
        assert "here is not timed: " in flat(printed)
        assert reason in flat(printed)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--device", "cuda", "--gpu", "h200"], "is not the device here"),
        (["--device", "cuda", "--tp", "2"], "--device none"),
        (["--device", "cuda", "--model", "llama-3-70b"], "takes 141"),
        (["--context", "0,1024k"], "at batch 1"),
    ],
)
def test_what_the_device_cannot_do_is_refused_before_anything_runs(
    run, cuda_device, monkeypatch, arguments, says
):
    monkeypatch.setattr(run_module, "measured_rows", None)
    code, printed, record = run(*arguments)
    assert code == ExitCode.USAGE
    assert (printed.out, record) == ("", None)
    assert says in printed.err
    assert len(printed.err.strip().splitlines()) == 1


def test_a_device_that_the_table_lacks_is_timed_without_a_share_of_its_sheet(run, cuda_device):
    cuda_device(replace(FACTS, name="NVIDIA T4"))
    code, printed, record = run("--batch", "1", "--no-chart")
    points = details_of(record.details).points
    assert code == ExitCode.OK
    assert points[0].share_of_sheet is None
    assert "NVIDIA T4 is not in the table of GPUs" in printed.out
    code, printed, record = run("--batch", "1", "--no-chart", "--gpu", "l4")
    assert details_of(record.details).points[0].share_of_sheet is not None
    assert "not in the table" not in printed.out


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (DetokbenchError("a decode step fails"), ExitCode.BROKEN_SETUP),
    ],
)
def test_a_run_that_ends_early_keeps_its_points(run, cuda_device, monkeypatch, raised, code):
    def breaks_off(*arguments, **options):
        rows = timed(*arguments, **options)
        yield next(rows)
        raise raised

    monkeypatch.setattr(run_module, "measured_rows", breaks_off)
    got, printed, record = run("--batch", "1,2", "--context", "0")
    assert got == code
    assert record.partial
    assert len(rows_of(record, "measured")) == 1
    assert len(rows_of(record, "roofline")) == 2
    assert "partial: 1 of 2 points finished" in printed.out


def test_a_run_that_ends_before_its_first_point_leaves_no_record(run, cuda_device, monkeypatch):
    def ends(*_, **__):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(run_module, "measured_rows", ends)
    code, printed, record = run("--batch", "1")
    assert (code, record) == (ExitCode.INTERRUPTED, None)
    assert printed.out == ""


def test_logits_that_are_no_numbers_are_warned_of(run, cuda_device, monkeypatch):
    def broken(*arguments, **options):
        for row in timed(*arguments, **options):
            yield replace(row, graph_error=float("nan"))

    monkeypatch.setattr(run_module, "measured_rows", broken)
    _, printed, record = run("--batch", "1", "--context", "0", "--no-chart")
    assert "logits that are no numbers" in printed.out
    assert details_of(record.details).points[0].graph_error is None


def test_an_old_record_is_shown_and_drawn_again_from_the_file_alone(run, tmp_path, cuda_device):
    from rich.console import Console

    _, printed, record = run("--batch", "1..64", "--context", "0,4k", "--derate", "0.9")
    out = io.StringIO()
    print_time_step(record, Console(file=out, width=100))
    assert out.getvalue() == printed.out
    again = draw_chart(record, tmp_path / "again.json")
    assert [path.name for path in again] == ["again.png", "again.svg"]


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gpu", "h101"], "unknown GPU 'h101'; did you mean 'h100-sxm'?"),
        (["--gpu", "h101", "--device", "cpu"], "did you mean 'h100-sxm'?"),
        (["--tp", "3"], "tp 3 does not divide"),
        (["--tp", "0"], "tp 0 does not divide"),
        (["--derate", "0"], "must be above 0"),
        (["--derate", "1.5"], "at most 1"),
        (["--derate", "nan"], "must be above 0"),
        (["--model", "llama-3-8"], "did you mean 'llama-3-8b'?"),
        (["--batch", "0"], "--batch: '0' must lie between 1 and"),
        (["--context", "-1"], "--context"),
        (["--context", "0,,1"], "empty part"),
        (["--weights", "fp4"], "--weights: unknown 'fp4'"),
        (["--kv", "int4"], "--kv: unknown 'int4'"),
        (["--device", "tpu"], "--device: unknown 'tpu'"),
        (["--device", "cpu", "--gpu", "h200"], "--device cpu times a bf16 step"),
        (["--device", "cpu", "--derate", "0.8"], "--device cpu times a bf16 step"),
    ],
)
def test_wrong_options_get_one_line_and_nothing_is_written(run, arguments, says):
    code, printed, record = run(*arguments)
    assert code == ExitCode.USAGE
    assert (printed.out, record) == ("", None)
    assert says in printed.err
    assert len(printed.err.strip().splitlines()) == 1


def test_without_torch_a_device_that_is_asked_for_is_a_broken_set_up(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for device in ("cuda", "cpu"):
        code, printed, record = run("--device", device)
        assert (code, record) == (ExitCode.BROKEN_SETUP, None)
        assert "pip install 'detokbench[gpu]'" in printed.err
    code, printed, _ = run("--batch", "1", "--no-chart")
    assert code == ExitCode.OK
    assert "modelled: roofline" in printed.out


# --- on the CPU ----------------------------------------------------------------------------


@pytest.fixture
def tiny_folder(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY_CONFIG))
    return str(folder)


def test_a_small_model_end_to_end_on_the_cpu(run, tmp_path, tiny_folder, monkeypatch):
    pytest.importorskip("torch")
    briefly = run_module.Effort(samples=3, sample_s=0.001, warm_up_s=0.001)
    monkeypatch.setattr("detokbench.tstep.run.QUICK_EFFORT", briefly)
    code, printed, record = run(
        "--device", "cpu", "--model", tiny_folder, "--batch", "1,2", "--context", "0,8", "--quick"
    )
    assert code == ExitCode.OK
    assert {row.source for row in record.rows} == {"cpu"}
    assert [(row.batch, row.context) for row in record.rows] == [(1, 0), (2, 0), (1, 8), (2, 8)]
    assert all(row.median > 0 and len(row.samples) == 3 for row in record.rows)
    assert "cpu, not a GPU" in printed.out
    assert "roofline" not in printed.out
    assert details_of(record.details).gpu is None
    assert str(tmp_path) not in next(tmp_path.glob("*.json")).read_text()
    assert len(list(tmp_path.glob("*.png"))) == 1


def test_a_model_of_real_size_is_refused_on_the_cpu(run):
    pytest.importorskip("torch")
    code, printed, record = run("--device", "cpu")
    assert (code, record) == (ExitCode.USAGE, None)
    assert "takes 16.1 GB" in printed.err


def test_a_folder_works_on_paper(run, tiny_folder):
    code, printed, record = run("--device", "none", "--model", tiny_folder, "--no-chart")
    assert code == ExitCode.OK
    assert "time-step · tiny" in printed.out
    assert record.details["model"]["name"] == "tiny"


# --- readings and lists --------------------------------------------------------------------


def made(contexts, gpu="h100-sxm", **options):
    asked = Asked(LLAMA_8B, [1, 8], contexts, **options)
    plan = Plan(asked, Target(gpu=find_gpu(gpu)))
    return build_record(plan, list(plan.paper_rows()), created="2026-01-02T03:04:05Z", command=[])


def test_readings_follow_the_numbers():
    never = read_time_step(made([4096]))
    assert never[0].startswith("At B = 1 and L = 4k a step takes 4.64 ms by the roofline")
    assert never[1].startswith("Compute never takes over at L = 4k")
    everywhere = read_time_step(made([0]))
    assert everywhere[1] == "On paper compute takes over from B ≈ 295 at L = 0."
    assert not any("largest batch" in sentence for sentence in everywhere)
    faster = read_time_step(made([0], weights="fp8"))
    assert "2.24 ms" in faster[0]


def test_units_of_steps_and_data_sheets():
    assert milliseconds(4.4806e-3) == "4.48"
    assert milliseconds(4.4806e-3, 4.2e-3, 4.8e-3) == "4.5"
    assert (tera(3.35e12), tera(1979e12), tera(0.3e12)) == ("3.35", "1,979", "0.3")
    assert (data_size(15.0098e9), data_size(131_072), data_size(256)) == (
        "15.0 GB",
        "131 kB",
        "256 B",
    )
    assert share(0.9248) == "92 %"


def test_lists_of_gpus_and_models(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["gpu", "list"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert re.search(r"h200 +141 +4\.8 +989 +1,979 +NVIDIA H200", printed)
    assert main(["model", "list"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert re.search(r"llama-3-8b +32 +32/8 +8\.03 B +15\.0 GB +131 kB", printed)
