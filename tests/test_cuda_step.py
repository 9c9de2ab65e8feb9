"""The timing of decode steps: end to end on the CPU, and on a CUDA device where there is one."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.tstep.device import UNKNOWN, cuda_available, parse_nvidia_smi
from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.rows import paper_rows
from detokbench.tstep.samples import relative_range, rounds_for, spread_warning, take_samples
from detokbench.tstep.shapes import ModelShape, find_shape

TINY = ModelShape("tiny", 2, 32, 4, 2, 8, 48, 97)
BRIEFLY = {"samples": 3, "sample_s": 0.001, "warm_up_s": 0.001}

needs_cuda = pytest.mark.skipif(not cuda_available(), reason="needs a CUDA device")


# --- without torch -------------------------------------------------------------------------


def test_samples_are_means_over_rounds_after_a_warm_up() -> None:
    asked: list[int] = []

    def clock(rounds: int) -> float:
        asked.append(rounds)
        return 0.01

    assert take_samples(clock, samples=3, sample_s=0.1, warm_up_s=0.5) == (0.01, 0.01, 0.01)
    assert asked == [1, 50, 1, 10, 10, 10]


def test_a_round_longer_than_the_sample_or_of_no_time_is_done_once() -> None:
    assert rounds_for(0.1, 5.0) == 1
    assert rounds_for(0.1, 0.0) == 1


def test_the_spread_warns_over_half_a_percent() -> None:
    assert relative_range([1.0, 1.002, 1.004]) == pytest.approx(0.004, rel=0.01)
    assert spread_warning(0.004) == ""
    assert "1.2%" in spread_warning(0.012)


def test_nvidia_smi_values_that_are_missing_become_unknown() -> None:
    assert parse_nvidia_smi("570.86.15, 1980, [N/A]\n", 3) == ["570.86.15", "1980", UNKNOWN]
    assert parse_nvidia_smi("No devices were found", 2) == [UNKNOWN, UNKNOWN]


def test_rows_on_paper_keep_their_sources_apart() -> None:
    shape, gpu = find_shape("llama-3-8b"), find_gpu("h100-sxm")
    (roofline,) = paper_rows(shape, gpu, [512], [0])
    (memory,) = paper_rows(shape, gpu, [512], [0], source="memory-only", derate=0.5)
    (derated,) = paper_rows(shape, gpu, [512], [0], source="derated", derate=0.8)
    assert roofline.t_step_s == pytest.approx(7.77e-3, abs=0.01e-3)
    assert roofline.note == "bound by compute"
    assert memory.t_step_s == pytest.approx(4.48e-3, abs=0.01e-3)
    assert memory.share_of_sheet == pytest.approx(1)
    assert derated.t_step_s == pytest.approx(7.77e-3 / 0.8, abs=0.01e-3)
    assert [row.source for row in (roofline, memory, derated)] == [
        "roofline",
        "memory-only",
        "derated",
    ]


def test_points_on_paper_that_do_not_fit_say_so_and_come_in_order() -> None:
    shape, gpu = find_shape("llama-3-8b"), find_gpu("h100-sxm")
    rows = list(paper_rows(shape, gpu, [1, 512], [128, 1024]))
    assert [(row.batch, row.context) for row in rows] == [
        (1, 128),
        (512, 128),
        (1, 1024),
        (512, 1024),
    ]
    assert [row.note.split(":")[0] for row in rows] == ["", "bound by compute", "", "does not fit"]


# --- on the CPU ----------------------------------------------------------------------------


def test_a_table_is_timed_end_to_end_on_the_cpu() -> None:
    pytest.importorskip("torch")
    from detokbench.tstep.cuda_step import measured_rows

    gpu = find_gpu("h100-sxm")
    rows = list(
        measured_rows(
            TINY,
            [1, 3],
            [0, 5],
            device="cpu",
            dtype="float32",
            copy_bandwidth_bytes_s=1e9,
            gpu=gpu,
            copies=2,
            **BRIEFLY,
        )
    )
    assert [(row.batch, row.context) for row in rows] == [(1, 0), (3, 0), (1, 5), (3, 5)]
    for row in rows:
        assert row.source == "cpu"
        assert len(row.samples) == 3
        assert row.t_step_s is not None
        assert min(row.samples) <= row.t_step_s <= max(row.samples)
        assert row.graph_error is None
        values = TINY.streamed_params + row.batch * max(row.context, 1) * TINY.kv_values_per_token
        assert row.bytes == 4 * values
        assert row.share_of_copy == pytest.approx(row.bytes / row.t_step_s / 1e9)
        assert row.share_of_sheet == pytest.approx(row.bytes / row.t_step_s / 3.35e12)


def test_a_point_out_of_memory_is_said_to_be_so_and_the_rest_goes_on() -> None:
    pytest.importorskip("torch")
    from detokbench.tstep.cuda_step import measured_rows

    rows = list(measured_rows(TINY, [1, 1 << 20, 2], [64], device="cpu", **BRIEFLY))
    assert [row.t_step_s is None for row in rows] == [False, True, False]
    assert rows[1].note.startswith("out of memory: ")
    assert rows[1].samples == ()


def test_running_out_inside_a_step_is_a_point_out_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    from detokbench.tstep import llama
    from detokbench.tstep.cuda_step import measured_rows

    def no_memory(*_: object, **__: object) -> None:
        try:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        finally:
            raise RuntimeError("capture was invalidated")

    monkeypatch.setattr(llama, "decode_step", no_memory)
    (row,) = measured_rows(TINY, [1], [4], device="cpu", **BRIEFLY)
    assert row.t_step_s is None


def test_a_step_that_fails_is_a_broken_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from detokbench.tstep import llama
    from detokbench.tstep.cuda_step import measured_rows

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no kernel image is available\nmore lines")

    monkeypatch.setattr(llama, "decode_step", broken)
    with pytest.raises(DetokbenchError, match=r"no kernel image is available$") as error:
        list(measured_rows(TINY, [1], [4], device="cpu", **BRIEFLY))
    assert error.value.exit_code == ExitCode.BROKEN_SETUP


@pytest.mark.parametrize(
    "arguments",
    [
        {"batches": [0]},
        {"contexts": [-1]},
        {"device": "abacus"},
        {"device": "meta"},
        {"dtype": "float8"},
        {"shape": find_shape("llama-3-8b")},
    ],
)
def test_what_cannot_be_timed_is_a_usage_error(arguments: dict[str, object]) -> None:
    pytest.importorskip("torch")
    from detokbench.tstep.cuda_step import measured_rows

    given = {"shape": TINY, "batches": [1], "contexts": [4], "device": "cpu", **arguments}
    with pytest.raises(DetokbenchError) as error:
        list(measured_rows(**given, **BRIEFLY))  # type: ignore[arg-type]
    assert error.value.exit_code == ExitCode.USAGE


@pytest.mark.skipif(cuda_available(), reason="needs a machine without a CUDA device")
def test_without_a_cuda_device_it_is_said_that_there_is_none() -> None:
    pytest.importorskip("torch")
    from detokbench.tstep.device import resolve_device

    with pytest.raises(DetokbenchError, match="no CUDA device"):
        resolve_device("cuda")


def test_without_torch_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from detokbench.tstep.device import import_torch

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DetokbenchError, match=r"detokbench\[gpu\]") as error:
        import_torch()
    assert error.value.exit_code == ExitCode.BROKEN_SETUP
    assert not cuda_available()


def test_facts_and_copy_bandwidth_of_the_cpu() -> None:
    pytest.importorskip("torch")
    from detokbench.tstep.device import device_facts, measure_copy_bandwidth, resolve_device

    device = resolve_device("cpu")
    facts = device_facts(device)
    assert facts.name.startswith("cpu (")
    assert facts.power_cap_w == UNKNOWN
    assert facts.memory_bytes > 0
    assert measure_copy_bandwidth(device, size_bytes=1 << 16) > 0


def test_small_models_are_rotated_until_the_cache_is_exceeded() -> None:
    from detokbench.tstep.resident import copies_to_defeat_l2

    assert copies_to_defeat_l2(16_000_000_000, 50_000_000) == 1
    assert copies_to_defeat_l2(10_000_000, 50_000_000) == 20
    assert copies_to_defeat_l2(10_000_000, 0) == 1


def test_the_error_is_relative_to_the_largest_logit() -> None:
    torch = pytest.importorskip("torch")
    from detokbench.tstep.cuda_step import relative_error

    reference = torch.tensor([-8.0, 1.0])
    assert relative_error(torch.tensor([-8.0, 3.0]), reference) == 0.25
    assert math.isnan(relative_error(torch.tensor([math.nan, 0.0]), reference))


class FakeTorch:
    """As much of torch.cuda as a capture touches; a replay lasts 4 ms on its clock."""

    def __init__(self, external_events: bool) -> None:
        self.cuda = self
        self.external_events = external_events
        self.now_ms = 0.0
        self.log: list[str] = []
        self.captured: list[FakeEvent] = []
        self.capturing = False

    def Event(self, enable_timing: bool, external: bool = False) -> "FakeEvent":
        if external and not self.external_events:
            raise TypeError("unexpected keyword argument 'external'")
        return FakeEvent(self)

    def Stream(self) -> "FakeTorch":
        return self

    CUDAGraph = current_stream = Stream

    def stream(self, _: object) -> nullcontext[None]:
        return nullcontext()

    @contextmanager
    def graph(self, _: object) -> Iterator[None]:
        self.log.append("capture")
        self.capturing = True
        yield
        self.capturing = False

    def replay(self) -> None:
        for event in self.captured[:1]:
            event.at_ms = self.now_ms
        self.now_ms += 4.0
        for event in self.captured[1:]:
            event.at_ms = self.now_ms

    def wait_stream(self, _: object) -> None: ...

    def synchronize(self, _: object = None) -> None:
        self.now_ms += 1.0  # the host's share, which must not be counted


class FakeEvent:
    def __init__(self, torch: FakeTorch) -> None:
        self.torch = torch
        self.at_ms = 0.0

    def record(self) -> None:
        self.at_ms = self.torch.now_ms
        if self.torch.capturing:
            self.torch.log.append("event")
            self.torch.captured.append(self)

    def synchronize(self) -> None: ...

    def elapsed_time(self, end: "FakeEvent") -> float:
        return end.at_ms - self.at_ms


@pytest.mark.parametrize("external_events", [True, False])
def test_a_capture_times_its_replays_without_the_host(
    monkeypatch: pytest.MonkeyPatch, external_events: bool
) -> None:
    from types import SimpleNamespace

    from detokbench.tstep import device, graph

    torch = FakeTorch(external_events)
    monkeypatch.setattr(graph, "import_torch", lambda: torch)
    monkeypatch.setattr(device, "import_torch", lambda: torch)
    monkeypatch.setattr(graph, "query_nvidia_smi", lambda *_: ["1980"])

    def step(name: str) -> str:
        torch.log.append(name)
        return f"logits of {name}"

    captured = graph.CapturedSteps(
        SimpleNamespace(type="cuda"), [lambda: step("a"), lambda: step("b")]
    )
    nodes = ["event", "a", "b", "event"] if external_events else ["a", "b"]
    assert torch.log == [*["a", "b"] * 3, "capture", *nodes]
    assert captured.logits == "logits of a"
    assert captured.round_s(5) == pytest.approx(4e-3)
    assert captured.sm_clock_mhz(4e-3) == 1980
    monkeypatch.setattr(graph, "query_nvidia_smi", lambda *_: [UNKNOWN])
    assert captured.sm_clock_mhz(4e-3) is None


# --- on a CUDA device ----------------------------------------------------------------------


@needs_cuda
@pytest.mark.parametrize("compile_layers", [False, True])
def test_a_captured_step_gives_the_eager_logits(compile_layers: bool) -> None:
    from detokbench.tstep.cuda_step import measured_rows

    shape = ModelShape("small", 4, 512, 8, 2, 64, 1024, 4096)
    rows = list(
        measured_rows(
            shape, [1, 4], [0, 256], device="cuda", compile_layers=compile_layers, **BRIEFLY
        )
    )
    for row in rows:
        assert row.source == "measured"
        assert row.t_step_s is not None
        assert row.graph_error is not None
        assert row.graph_error < 0.02


@needs_cuda
def test_a_point_beyond_the_devices_memory_is_reported() -> None:
    from detokbench.tstep.cuda_step import measured_rows

    shape = ModelShape("small", 4, 512, 8, 2, 64, 1024, 4096)
    rows = list(measured_rows(shape, [1, 1 << 22, 2], [1024], device="cuda", **BRIEFLY))
    assert [row.t_step_s is None for row in rows] == [False, True, False]


@needs_cuda
def test_facts_and_copy_bandwidth_of_a_cuda_device() -> None:
    from detokbench.tstep.device import device_facts, measure_copy_bandwidth, resolve_device

    device = resolve_device("cuda")
    assert device_facts(device).memory_bytes > 0
    assert measure_copy_bandwidth(device, size_bytes=1 << 26) > 1e10
