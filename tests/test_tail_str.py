"""``tail-str``: stops, what is counted and modelled, the screen, and small real runs.

No timing decides anything: where times matter they are made up.
"""

import io
import json
import math
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detokbench.bench.check_streams import check_streams, stop_check
from detokbench.bench.check_subjects import CheckSubjects, RunningBatch
from detokbench.bench.manager import Manager
from detokbench.bench.plan import Cell, PreparedStops, StreamCount
from detokbench.bench.stop_sets import StopSet, given_sets, printable, synthetic_stop
from detokbench.bench.tail_str_details import Asked, tail_str_details
from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.model.growth import fitted_parts, fitted_power
from detokbench.model.hold_back import (
    Suppression,
    hold_back_s,
    suppression_of_stream,
    vllm_hold_back_chars,
)
from detokbench.model.tail_str import decodes_of_stream
from detokbench.records.schema import Record, Row
from detokbench.records.store import read_record
from detokbench.records.tail_str import details_of
from detokbench.report.kinds import draw_chart
from detokbench.report.tail_str_reading import read_tail_str
from detokbench.report.tail_str_screen import print_tail_str
from detokbench.tstep.curves import given_curve, roofline_curve
from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.roofline import fits_in_memory, largest_batch
from detokbench.tstep.shapes import find_shape

US = 1e-6
ANSWER = StopSet(name="</answer>", strings=("</answer>",), tokens=3)


# Stops


@pytest.mark.parametrize("tokens", [1, 3, 8, 16, 40, 64, 200])
def test_a_synthetic_stop_has_so_many_tokens_in_any_vocabulary(llama3, spm_fast, tokens):
    for vocabulary in (llama3, spm_fast):
        assert len(vocabulary.encode(synthetic_stop(tokens, vocabulary.encode))) == tokens


def test_sets_are_each_stop_alone_and_all_together(llama3):
    sets = given_sets(["END", "\n\nHuman:"], ["[0-9]{3}"], [5], llama3.encode)
    names = ["END", r"\n\nHuman:", "5 tokens", "/[0-9]{3}/", "all 4 stops"]
    assert [one.name for one in sets] == names
    assert len(sets[-1].strings) == 3
    assert sets[-1].regexes == ("[0-9]{3}",)
    assert sets[-1].tokens == 5
    assert sets[3].tokens is None
    assert given_sets(["END"], [], [], llama3.encode)[0].strings == ("END",)


def test_names_of_stops_show_what_cannot_be_seen():
    assert printable("a\n\tb\u200b") == r"a\n\tb\u200b"
    assert printable("终止 </s>") == "终止 </s>"


# What is counted


def stream_of(llama3, text, stops):
    check = stop_check(stops, llama3.encode, llama3.tokenizer.decode)
    return check_streams([llama3.encode(text)], stops, check)[0]


def test_a_stream_is_cut_in_front_of_its_stop(llama3):
    stream = stream_of(llama3, "The answer is 42</answer> and more", ANSWER)
    assert llama3.decode(stream.ids).startswith("The answer is 42</answer"[:18])
    assert "</answer>" not in llama3.decode(stream.ids)
    assert stream.held[-1]
    assert stream_of(llama3, "No stop in here", ANSWER).ids == llama3.encode("No stop in here")


def test_a_running_batch_sends_what_the_model_counts(llama3):
    stops = StopSet(name="and", strings=(" and the end",), tokens=3)
    texts = [
        "One and two and three and four and five and so on, and on and on.",
        "Salt and pepper and oil; bread and butter and jam and tea, and milk.",
    ]
    check = stop_check(stops, llama3.encode, llama3.tokenizer.decode)
    streams = check_streams([llama3.encode(text) for text in texts], stops, check)
    for ids, interval in [(1, 1), (1, 4), (2, 3)]:
        for stream in streams:
            held = stream.held_at_steps(ids)
            batch = RunningBatch([stream], ids, interval)
            request = batch.requests[0]
            checks = 0
            for step in range(len(held)):
                (taken,) = batch.advance(1)
                for due in batch.due(taken):
                    checks += 1
                    due.sent = due.sent if held[step] else len(due.output)
            assert request.step == len(held)
            counted = decodes_of_stream([ids] * len(held), held, interval=interval)
            assert checks == counted.prefix
            assert any(held)


def test_requests_of_a_batch_are_at_places_of_their_own(llama3):
    stream = stream_of(llama3, "word " * 64, ANSWER)
    batch = RunningBatch([stream] * 16, 1, 4)
    assert len({request.step for request in batch.requests}) > 8
    due = []
    for _ in range(64):
        (taken,) = batch.advance(16)
        due.append(len(batch.due(taken)))
        for request in batch.due(taken):
            request.sent = len(request.output)
    assert max(due) <= 8
    assert sum(due) / 64 == pytest.approx(16 / 4, rel=0.15)


@pytest.mark.parametrize(
    ("metric", "ids", "interval"),
    [
        ("decode", 1, None),
        ("decode", 3, None),
        ("contain", 3, None),
        ("prefix_scan", 1, None),
        ("finish_check", 3, None),
        ("prefix_check", 1, None),
        ("both_checks", 3, 4),
        ("both_checks", 1, None),
        ("floor", None, None),
    ],
)
def test_every_cell_has_a_subject_that_runs(llama3, metric, ids, interval):
    outputs = [llama3.encode("Some words, and then a few more of them. ") * 3] * 4
    cell = Cell(
        path="tail-str", metric=metric, batch=4, ids_per_step=ids, stream_interval=interval,
        stops=ANSWER,
    )  # fmt: skip
    check = stop_check(ANSWER, llama3.encode, llama3.tokenizer.decode)
    streams = {ANSWER: check_streams(outputs, ANSWER, check)}
    subject = CheckSubjects(llama3, streams).make(cell)
    units = 4 if interval == 4 and ids == 1 else 2 if interval == 4 else 1
    for _ in range(3):
        timing = subject.run(5)
        assert timing.units == 5 * units
        assert timing.ns > 0


def test_stops_that_end_every_stream_are_refused(llama3):
    stops = StopSet(name="/./", regexes=(".",))
    cell = Cell(path="tail-str", metric="decode", batch=1, ids_per_step=1, stops=stops)
    check = stop_check(stops, llama3.encode, llama3.tokenizer.decode)
    streams = {stops: check_streams([[1, 2, 3]], stops, check)}
    with pytest.raises(DetokbenchError, match="ends every stream") as caught:
        CheckSubjects(llama3, streams).make(cell)
    assert caught.value.exit_code == ExitCode.USAGE


# The model


def test_vllm_holds_back_the_longest_stop_less_one_character():
    assert vllm_hold_back_chars(["</answer>", "END"]) == 8
    assert vllm_hold_back_chars(["</answer>"], stop_in_output=True) == 0
    assert vllm_hold_back_chars([]) == 0
    assert hold_back_s(8, 4.0, 1, 5e-3) == pytest.approx(10e-3)
    assert hold_back_s(8, 4.0, 2, 5e-3) == pytest.approx(5e-3)


def test_suppressed_chunks_are_counted_once_and_their_waits_added():
    held = [False, True, True, False, False, True, False, False]
    chars = [0, 3, 6, 9, 12, 15, 18, 21, 24]
    found = suppression_of_stream([1] * 8, held, chars)
    assert found == Suppression(chunks=4, suppressed=2, longest_steps=2, longest_chars=6)
    assert found.share == 0.5


@given(held=st.lists(st.booleans(), min_size=1, max_size=40), interval=st.integers(1, 6))
def test_chunks_and_waits_make_up_the_checks(held, interval):
    chars = range(0, 2 * len(held) + 1, 2)
    found = suppression_of_stream([1] * len(held), held, chars, interval)
    checks = decodes_of_stream([1] * len(held), held, interval=interval).prefix
    assert found.suppressed <= found.chunks <= checks
    assert (found.longest_steps == 0) == (found.suppressed == 0)
    assert found.longest_chars <= 2 * len(held)


def test_powers_and_parts_are_found_again():
    lengths = [5.0, 20.0, 80.0, 300.0]
    assert fitted_power(lengths, [3 * n**2 for n in lengths]) == pytest.approx(2)
    assert fitted_power(lengths, [3 * n for n in lengths]) == pytest.approx(1)
    for fixed, per_unit, per_square in [
        (5, 2, 0.01),
        (0, 2, 0.01),
        (5, 2, 0),
        (0, 0, 3),
        (0, 2, 0),
    ]:
        parts = fitted_parts(lengths, [fixed + per_unit * n + per_square * n**2 for n in lengths])
        found = (parts.fixed, parts.per_unit, parts.per_square)
        assert found == pytest.approx((fixed, per_unit, per_square), abs=1e-6)
    assert fitted_parts(lengths, [2 * n + 0.01 * n**2 for n in lengths]).overtaking_length == (
        pytest.approx(200)
    )
    assert fitted_parts(lengths, [n**0.5 for n in lengths]).overtaking_length == math.inf
    assert min(fitted_parts(lengths[:2], [1.0, 30.0]).per_unit, 0) == 0
    for fit in (fitted_power, fitted_parts):
        with pytest.raises(ValueError, match="two different lengths"):
            fit([3.0, 3.0], [1.0, 2.0])


def test_the_largest_batch_is_the_last_that_fits():
    shape, gpu = find_shape("llama-3-8b"), find_gpu("h100-sxm")
    for context in (128, 1024, 8192):
        most = int(largest_batch(shape, gpu, context))
        assert fits_in_memory(shape, gpu, most, context)
        assert not fits_in_memory(shape, gpu, most + 1, context)
    assert largest_batch(shape, gpu, 0) == math.inf
    assert largest_batch(find_shape("llama-3-70b"), gpu, 0) == 0


def a_row(metric, value, ids=1, interval=None, stop="</answer>", samples=None):
    return Row(
        path="tail-str",
        batch=32,
        metric=metric,
        median=value,
        ci_low=value * 0.98,
        ci_high=value * 1.02,
        mad=value * 0.01,
        samples=samples or [value] * 3,
        vocab="llama-3",
        ids_per_step=ids,
        stream_interval=interval,
        stop=stop,
        stop_tokens=3,
    )


def a_count(stop="</answer>", ids=1, interval=1, prefix=1.0, retries=0.0, **more):
    return StreamCount(
        stop=stop, ids_per_step=ids, stream_interval=interval, finish=1, regex_retries=retries,
        prefix=prefix, floor=1 + prefix, streams=32, cut_streams=0, **more,
    )  # fmt: skip


def parts_of(stop, decode, scan, both):
    return [
        a_row("decode", decode, stop=stop),
        a_row("contain", 0.2 * US, stop=stop),
        a_row("prefix_scan", scan, stop=stop),
        a_row("both_checks", both, interval=1, stop=stop),
    ]


def prepared(*counts, growth=()):
    return PreparedStops(
        vocabulary={"name": "v", "ids": 10, "tokenizer": "Rust", "source": "a test"},
        given=[ANSWER],
        growth=list(growth),
        windows={"</answer>": 4},
        scanned_chars={stops.name: float(len(stops.strings[0])) for stops in growth},
        counts=list(counts),
        chars_per_id=4.0,
    )


GROWN = [StopSet(name=f"{n} tokens", strings=("x" * 4 * n,), tokens=n) for n in (3, 8, 16, 40, 64)]


def grown_rows():
    for stops in GROWN:
        chars = len(stops.strings[0])
        scan = 0.1 * US * chars + 2e-10 * chars**2
        yield from parts_of(stops.name, 3 * US, scan, 7 * US + scan)


def details(t_step=None, batches=(1, 32, 256, 512), overlap=True, assumed=None):
    count = a_count(chunks=1000, suppressed=20, longest_steps=3, longest_chars=9)
    counts = [count, *(a_count(stop=stops.name) for stops in GROWN)]
    rows = [*parts_of("</answer>", 3 * US, 1 * US, 8 * US), *grown_rows()]
    asked = Asked(t_step or roofline_curve("h100-sxm", 128), list(batches), overlap, assumed)
    return tail_str_details(prepared(*counts, growth=GROWN), rows, 32, asked)


def test_a_setting_is_the_sum_of_its_parts_and_its_error_is_taken_within_processes():
    setting = details().settings[0]
    assert setting.modelled_s == pytest.approx((3 + 0.2 + 3 + 1) * US)
    assert setting.measured_s == pytest.approx(8 * US)
    assert setting.error == pytest.approx(7.2 / 8 - 1)
    assert setting.crossover == "never"
    assert "15.2 µs on the GPU" in setting.crossover_why


def test_the_worst_process_is_the_one_furthest_off():
    rows = parts_of("</answer>", 3 * US, 1 * US, 8 * US)
    rows[-1] = a_row("both_checks", 8 * US, interval=1, samples=[8 * US, 7.2 * US, 3.6 * US])
    asked = Asked(given_curve(4.48e-3), [1], True)
    setting = tail_str_details(prepared(a_count()), rows, 32, asked).settings[0]
    assert setting.error == pytest.approx(0)
    assert setting.error_worst == pytest.approx(1)


def test_retries_are_finish_decodes_and_chunks_use_the_window_that_is_not_widened():
    rows = [
        *parts_of("</answer>", 3 * US, 1 * US, 8 * US),
        a_row("decode", 5 * US, ids=4),
        a_row("contain", 0.4 * US, ids=4),
        a_row("both_checks", 25 * US, ids=4, interval=8),
    ]
    count = a_count(ids=4, interval=8, prefix=0.5, retries=3.0)
    asked = Asked(given_curve(4.48e-3), [1], True)
    setting = tail_str_details(prepared(count), rows, 32, asked).settings[0]
    assert setting.finish_decode_s == pytest.approx(20 * US)
    assert setting.contain_s == pytest.approx(1.6 * US)
    assert setting.prefix_decode_s == pytest.approx(1.5 * US)
    assert setting.prefix_scan_s == pytest.approx(0.5 * US)


def test_steps_over_the_batch():
    points = {point.batch: point for point in details(given_curve(4.48e-3)).batches}
    assert points[256].scheduler_s == pytest.approx(2.048e-3)
    assert points[256].step_overlap_s == pytest.approx(4.48e-3)
    assert points[256].step_added_s == pytest.approx(6.528e-3)
    assert points[256].share == pytest.approx(2.048 / 4.48)
    assert details(given_curve(1e-3)).settings[0].crossover == "125"


def test_batches_that_do_not_fit_are_marked():
    points = details(roofline_curve("h100-sxm", 1024)).batches
    assert [point.fits for point in points] == [True, True, True, False]


def test_the_chapters_figure_is_given_and_kept_apart():
    assumed = details(given_curve(4.48e-3), assumed=10 * US).assumed
    point = next(point for point in assumed.points if point.batch == 256)
    assert (point.calls, point.scheduler_s) == (512, pytest.approx(5.12e-3))
    assert assumed.crossover == "224"
    assert details(assumed=10 * US).assumed.crossover is None


def test_growth_says_the_power_and_what_copying_would_have():
    growth = details().growth
    assert 1.0 < growth.power < growth.power_at_end < 1.4
    assert growth.power_copied == pytest.approx(2, abs=0.05)
    assert growth.overtaking_chars == pytest.approx(500)
    assert growth.per_square_s == pytest.approx(2e-10)


def test_without_streaming_there_is_a_finish_check_only():
    rows = [
        a_row("decode", 3 * US),
        a_row("contain", 0.2 * US),
        a_row("both_checks", 4 * US),
    ]
    asked = Asked(given_curve(4.48e-3), [256], True)
    found = tail_str_details(prepared(a_count(interval=None, prefix=0)), rows, 32, asked)
    assert not found.streaming
    assert found.growth is None
    assert found.settings[0].modelled_s == pytest.approx(3.2 * US)
    assert found.stops[0].chunks is None


# The screen and the chart


def record(found=None, rows=None, **more):
    return Record(
        kind="tail-str",
        created="2026-01-02T03:04:05Z",
        command=[],
        detokbench="0.1.0",
        scenario={"name": "s", "stop": []},
        vocabulary={"name": "v", "ids": 10, "tokenizer": "Rust", "source": "a test"},
        settings={"pinned": True, "gc": False, "processes": 6, "processes_finished": 6},
        machine={"cpu": "a CPU", "cpus_usable": 2, "python": "CPython 3.11"},
        packages={"tokenizers": "0.23", "transformers": "5.24"},
        rows=[a_row("both_checks", 8 * US, interval=1)] if rows is None else rows,
        details=msgspec.to_builtins(found or details(assumed=10 * US)),
        **more,
    )


def screen(shown, width):
    from rich.console import Console

    out = io.StringIO()
    print_tail_str(shown, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 72, 80, 96, 100, 120, 140])
def test_the_screen_fits_any_window(width):
    printed = screen(record(), width)
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    for expected in ("</answer>", "T_step", "modelled", "measured", "hold-back", "5.12"):
        assert expected in printed


def test_stops_that_look_like_markup_are_shown_as_they_are():
    found = details()
    name = "[bold]a very long stop string[/bold]"
    for part in (*found.stops, *found.settings, *found.batches):
        if part.name if hasattr(part, "name") else part.stop == "</answer>":
            setattr(part, "name" if hasattr(part, "name") else "stop", name)
    printed = "".join(screen(record(found), 80).split())
    assert "[bold]averylongstop" in printed


def test_the_reading():
    read = " ".join(read_tail_str(record()))
    for expected in (
        "'</answer>' takes 8.0 µs a request and step; modelled from that, 2.0 ms of scheduler time",
        "with overlap the step lasts 5.8 ms",
        "set the pace at no batch",
        "misses the measured checks by 10 %",
        "its time with the power 1.1",
        "8 characters or about 12 ms for '</answer>'",
        "2.0 % of chunks for '</answer>', at most 3 steps on end (9 characters",
        "At 10 µs a call (given)",
    ):
        assert expected in read
    read = " ".join(read_tail_str(record(details(given_curve(4.48e-3), overlap=False))))
    assert "without overlap the step lasts 6.5 ms" in read
    assert "above B = 560." in read


def test_a_partial_record_says_so():
    printed = screen(record(partial=True), 100)
    assert "partial: 6 of 6 processes finished" in printed


def test_the_chart_is_redone_from_the_record_alone(tmp_path):
    png, svg = draw_chart(record(), tmp_path / "chart.json")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    empty = details()
    empty.settings = []
    assert draw_chart(record(empty), tmp_path / "none.json") == []


# The command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stop", ""], "empty stop string"),
        (["--stop"], "--stop"),
        (["--stop-regex", "("], "stop regex '(' is not valid"),
        (["--stop-regex", "(?<=a+)b"], "is not valid"),
        (["--stop-regex", ""], "empty pattern"),
        (["--t-step", "0ms"], "--t-step"),
        (["--t-step", "4.48"], "--t-step: '4.48' is not a duration"),
        (["--gpu", "h100-sxn"], "did you mean 'h100-sxm'?"),
        (["--context", "16384k"], "do not fit into"),
        (["--stop-tokens", "0"], "--stop-tokens"),
        (["--batch", "0"], "--batch"),
        (["--assume-c", "10"], "--assume-c"),
        (["--quick", "--rigorous"], "exclude each other"),
    ],
)
def test_wrong_options_get_one_line_and_exit_code_2(
    monkeypatch, capsys, tmp_path, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert main(["tail-str", *arguments]) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


SMALL = ["--quick", "--stream-interval", "1,4", "--ids-per-step", "1", "--stop-tokens", "3,12"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run, printed as JSON, with its chart; one stop to the point, one regex."""
    folder = tmp_path_factory.mktemp("run")
    stops = ["--stop", " and then", "--stop-regex", "[0-9]{6}x"]
    code = main(["tail-str", *SMALL, *stops, "--assume-c", "10us", "--out", str(folder)])
    assert code == ExitCode.OK
    return folder


@pytest.fixture(scope="module")
def measured(finished):
    return read_record(next(finished.glob("*.json")))


def test_record_and_chart_are_stored(finished):
    assert sorted(path.suffix for path in finished.iterdir()) == [".json", ".png", ".svg"]


def test_rows_have_all_metrics_and_say_whose_stops_they_are(measured):
    metrics = {
        "floor", "decode", "contain", "prefix_scan", "finish_check", "prefix_check", "both_checks",
    }  # fmt: skip
    assert {row.metric for row in measured.rows} == metrics
    assert all(row.median is not None and len(row.samples) == 2 for row in measured.rows)
    assert {row.path for row in measured.rows} == {"empty", "tail-str"}
    by_stop = {row.stop: row.stop_tokens for row in measured.rows if row.path == "tail-str"}
    assert by_stop == {
        " and then": 2, "/[0-9]{6}x/": None, "all 2 stops": 2, "3 tokens": 3, "12 tokens": 12,
    }  # fmt: skip
    regex = {row.metric for row in measured.rows if row.stop == "/[0-9]{6}x/"}
    assert regex == {"decode", "contain", "finish_check", "both_checks"}


def test_details_hold_what_was_modelled_and_counted(measured):
    found = details_of(measured)
    assert [stops.name for stops in found.stops] == [" and then", "/[0-9]{6}x/", "all 2 stops"]
    assert found.stops[0].suppressed > 0
    assert found.stops[1].window == 8
    given_settings = [setting for setting in found.settings if setting.is_given]
    assert len(given_settings) == 6
    assert {point.batch for point in found.batches} == {1 << power for power in range(10)}
    assert all(setting.decodes >= 1 for setting in found.settings)
    assert found.growth is not None
    assert found.t_step.source == "roofline"


def test_the_screen_of_a_real_run(measured):
    for width in (60, 100, 140):
        printed = screen(measured, width)
        assert max(map(len, printed.splitlines())) <= width


def test_json_and_no_streaming_on_a_python_tokenizer(capfd, tmp_path):
    arguments = ["--vocab", "tekken", "--no-streaming", "--json", "--no-chart"]
    arguments += ["--stop", "END", "--stop", "[/INST]"]
    out = str(tmp_path / "r.json")
    assert main(["tail-str", "--quick", *arguments, "--out", out]) == ExitCode.OK
    shown = json.loads(capfd.readouterr().out)
    assert shown == json.loads((tmp_path / "r.json").read_text())
    assert shown["vocabulary"]["tokenizer"] == "Python"
    (warning,) = (line for line in shown["warnings"] if line.startswith("stop "))
    assert warning.startswith("stop '[/INST]' is the special token '[/INST]': it cannot match")
    assert {row["metric"] for row in shown["rows"]} == {
        "floor", "decode", "contain", "finish_check", "both_checks",
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_a_stop_that_ends_every_stream_is_said_in_one_line(capsys, tmp_path):
    arguments = ["tail-str", "--quick", "--stop-regex", "[a-zA-Z]", "--out", str(tmp_path)]
    assert main(arguments) == ExitCode.USAGE
    assert "ends every stream" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_keeps_the_processes_that_finished(monkeypatch, tmp_path, capsys):
    measure = Manager.measure

    def stop_after_one(self, *arguments):
        for number, answer in enumerate(measure(self, *arguments)):
            if number == 1:
                raise KeyboardInterrupt
            yield answer

    monkeypatch.setattr(Manager, "measure", stop_after_one)
    arguments = [*SMALL, "--stop", "END", "--no-chart", "--out", str(tmp_path)]
    assert main(["tail-str", *arguments]) == ExitCode.INTERRUPTED
    stored = read_record(next(tmp_path.glob("*.json")))
    assert stored.partial
    assert len(stored.processes) == 1
    assert "partial: 1 of 2 processes finished" in " ".join(capsys.readouterr().out.split())
