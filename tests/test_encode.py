"""``encode``: its arithmetic on stored samples, what it measures, and a tiny run to the files."""

import asyncio
import io
import json
import random
import subprocess
import sys

import msgspec
import pytest
from rich.console import Console
from virtual_loop import run_virtually

from detokbench.bench.encode import EncodePlan, _rates
from detokbench.bench.encode_cells import encode_cells, pick_lengths
from detokbench.bench.encode_rows import encode_rows, modelled_stalls
from detokbench.bench.encode_subjects import EncodeCalls, as_engines_call, calls_of_one
from detokbench.bench.manager import Manager
from detokbench.bench.plan import PreparedEncode
from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.live.admission_stall import _Streams, schedule
from detokbench.live.encode_arrivals import measure_arrivals, poisson_times
from detokbench.live.heartbeat import Heartbeat
from detokbench.model.admission import late_gap_s, length_that_blocks
from detokbench.model.latency import latency_of, sample_floor
from detokbench.records.encode import (
    MOST_ARRIVALS,
    ArrivalCell,
    EncodeDetails,
    PromptFacts,
    StallCell,
    details_of,
    patience_s,
)
from detokbench.records.schema import CellSamples, ProcessRun, Record
from detokbench.records.store import read_record, write_record
from detokbench.report.encode_chart import encode_figure
from detokbench.report.encode_figures import EncodeFigures
from detokbench.report.encode_reading import read_encode
from detokbench.report.encode_screen import print_encode
from detokbench.report.kinds import draw_chart
from detokbench.workload.prompt_texts import PromptText, prompt_texts, texts_wanted
from detokbench.workload.scenario import load_scenario

MS = 1e-3
TINY = ["--lengths", "64,128", "--batch", "1,2", "--rate", "50", "--duration", "0.1s", "--quick"]


def test_a_percentile_has_two_samples_beyond_it_or_is_none():
    assert sample_floor(99) == 200
    assert latency_of(range(199)).p99 is None
    assert latency_of(range(1, 201)).p99 == 198
    assert latency_of([3, 1, 2]).median == 2
    assert latency_of([3, 1, 2]).worst == 3
    assert latency_of([]).median is None


def test_the_length_that_blocks_lies_between_measured_ones_on_a_power_law():
    points = [(100, 1 * MS), (1000, 10 * MS), (10_000, 100 * MS)]
    assert length_that_blocks(points, 30 * MS) == pytest.approx(3000)
    assert length_that_blocks(points, 0.5 * MS) == 0
    assert length_that_blocks(points, 1.0) is None
    assert length_that_blocks([], 1.0) is None


def test_the_longest_gap_is_a_step_and_what_is_in_its_way():
    assert late_gap_s(4 * MS, 1 * MS, 10 * MS) == pytest.approx(15 * MS)


def test_arrivals_are_those_of_the_seed_within_the_time_and_at_the_rate():
    times = poisson_times(1000, 2.0, random.Random(3))
    assert times == poisson_times(1000, 2.0, random.Random(3)) == sorted(times)
    assert times[0] > 0
    assert times[-1] < 2.0
    assert len(times) == 2000
    assert len(poisson_times(0.001, 0.1, random.Random(0))) == 1


def test_each_admission_falls_between_two_steps_and_is_followed_by_one():
    events = schedule(4 * MS, 100, 20, random.Random(1))
    steps = [at for at, comes_in in events if not comes_in]
    admitted = [at for at, comes_in in events if comes_in]
    assert steps == [pytest.approx(n * 4 * MS) for n in range(100)]
    assert len(admitted) == 5
    assert [int(at / (4 * MS)) for at in admitted] == [10, 30, 50, 70, 90]
    assert events[-1] == (steps[-1], False)


class LoggingPath:
    def __init__(self):
        self.opened, self.steps, self.ended = 0, [], []

    def open(self, prompts, flags=None):
        rows = list(range(self.opened, self.opened + len(prompts)))
        self.opened += len(prompts)
        return rows

    def step(self, rows, new_ids):
        self.steps.append((list(rows), [list(ids) for ids in new_ids]))
        return [""] * len(rows)

    def end(self, row):
        self.ended.append(row)
        return ""


def test_an_admitted_request_gets_its_first_token_with_the_next_step_and_leaves():
    path = LoggingPath()
    streams = _Streams(path, [[1], [2]], [[10, 11], [20, 21, 22]], [[5, 6]], [7])
    streams.step()
    streams.admit()
    streams.step()
    streams.step()
    assert path.steps == [
        ([0, 1], [[10], [20]]),
        ([0, 1, 2], [[11], [21], [7]]),
        ([0, 1], [[10], [22]]),
    ]
    assert path.ended == [2]
    assert (len(streams.out_at), len(streams.plain_s), len(streams.first_s)) == (3, 2, 1)
    assert len(streams.admit_s) == len(streams.cpu_s) == 1


@pytest.mark.parametrize(("way", "calls"), [("direct", 6), ("executor", 6)])
def test_every_arrival_is_encoded_once_with_the_texts_in_turn(way, calls):
    seen = []

    def tokenizer(texts):
        seen.append(texts)
        return {"input_ids": []}

    times = [n * MS for n in range(6)]
    arrived = asyncio.run(measure_arrivals(way, tokenizer, ["a", "b"], times, 5.0, 32, 0.002))
    assert seen == ["b", "a", "b", "a", "b", "a", "b"]  # the first is a warm-up
    assert (arrived.calls, arrived.encoded) == (calls, 6)
    assert all(wait is not None and wait > 0 for wait in arrived.waits_s)


def test_arrivals_at_once_are_encoded_together_by_the_micro_batcher():
    def tokenizer(texts):
        return {"input_ids": [[0]] * len(texts) if isinstance(texts, list) else [0]}

    arrived = asyncio.run(
        measure_arrivals("micro-batch", tokenizer, ["a", "b"], [0.0] * 50, 5.0, 32, 0.002)
    )
    assert arrived.encoded == 50
    assert arrived.calls < 50
    assert None not in arrived.waits_s


def test_what_is_not_done_in_time_is_given_up():
    def tokenizer(texts):
        from time import sleep

        sleep(0.02)
        return {"input_ids": []}

    for way in ("direct", "executor"):
        arrived = asyncio.run(measure_arrivals(way, tokenizer, ["a"], [0.0] * 50, 0.05, 32, 0.002))
        done = [wait for wait in arrived.waits_s if wait is not None]
        assert 1 <= len(done) < 50


def test_an_error_of_the_tokenizer_is_not_swallowed():
    seen = []

    def tokenizer(texts):
        seen.append(texts)
        if len(seen) > 1:
            raise ValueError("no ids")
        return {"input_ids": []}

    with pytest.raises(ValueError, match="no ids"):
        asyncio.run(measure_arrivals("direct", tokenizer, ["a"], [0.0], 1.0, 32, 0.002))


def test_the_heartbeat_sees_a_loop_that_was_blocked_until_the_end():
    async def blocked(loop):
        from time import sleep

        async with Heartbeat() as heartbeat:
            await asyncio.sleep(0.01)
            sleep(0.05)
        return heartbeat.longest_s

    assert run_virtually(blocked) >= 0.049


def test_texts_encode_to_about_their_length_and_differ(llama3):
    scenario, folder = load_scenario("llama3-chat")
    texts = prompt_texts(llama3, scenario, folder, [128, 1024], seed=0)
    for length, of_length in texts.items():
        assert len(of_length) == texts_wanted(length)
        assert len({text.text for text in of_length}) == len(of_length)
        for text in of_length:
            assert text.ids == len(llama3.encode(text.text))
            assert text.ids == pytest.approx(length, rel=0.02)
    assert texts == prompt_texts(llama3, scenario, folder, [128, 1024], seed=0)
    assert texts != prompt_texts(llama3, scenario, folder, [128, 1024], seed=1)


def test_calls_go_through_the_texts_one_by_one_or_in_batches():
    seen = []
    texts = [PromptText(name, 10) for name in "abc"]
    one = EncodeCalls(seen.append, texts, None)
    assert one.run(4).units == 4
    two = EncodeCalls(seen.append, texts, 2)
    assert two.run(2).units == 4
    assert seen == ["a", "b", "c", "a", ["a", "b"], ["c", "a"]]
    assert EncodeCalls(seen.append, [PromptText("a", 5000)], None).limit == 1


def test_a_python_tokenizer_is_called_as_sglang_calls_it(tekken):
    (name,) = calls_of_one(tekken)
    assert name == "tokenizer.encode"
    call = as_engines_call(tekken)
    assert call("Hi there")["input_ids"] == tekken.encode("Hi there")
    assert call(["Hi", "there"])["input_ids"] == [tekken.encode("Hi"), tekken.encode("there")]


def prepared(single=("tokenizer(text)",), several=("tokenizer(list)",)):
    return PreparedEncode(
        vocabulary={}, not_applicable=[], prompts=[], single_calls=list(single),
        list_calls=list(several),
    )  # fmt: skip


def test_cells_leave_out_lists_of_too_many_ids_and_batches_of_one():
    cells = encode_cells(prepared(), [128, 1024, 8192], [1, 8, 32], [128], ["fast"], 2, 1 << 14)
    single = [(c.prompt_len, c.batch) for c in cells if c.metric == "encode"]
    assert single == [(128, 1), (1024, 1), (8192, 1)]
    lists = [(c.batch, c.prompt_len, c.threads) for c in cells if c.metric == "encode_batch"]
    assert lists == [
        (8, 128, 1), (8, 128, 2), (8, 1024, 1), (8, 1024, 2), (32, 128, 1), (32, 128, 2)
    ]  # fmt: skip
    assert [c.metric for c in cells if c.path == "fast"] == ["admit", "first_token"]


def test_one_cpu_has_one_thread_count_and_a_python_tokenizer_no_lists():
    cells = encode_cells(prepared(), [128], [8], [128], [], 1, 1 << 14)
    assert [c.threads for c in cells if c.metric == "encode_batch"] == [1]
    cells = encode_cells(prepared(several=()), [128], [8], [128], [], 2, 1 << 14)
    assert {c.metric for c in cells} == {"encode"}


def test_lengths_nearest_to_the_wanted_ones_without_repeats():
    assert pick_lengths([64, 128], [128, 1024, 8192]) == [128]
    assert pick_lengths([128 << n for n in range(9)], [1024, 8192]) == [1024, 8192]
    assert pick_lengths([500, 900], [1024, 128]) == [500, 900]


def arrival(way, rate, median_ms, *, length=1024, unfinished=0, worst_ms=None):
    return ArrivalCell(
        way=way,
        length=length,
        rate=rate,
        load=rate / 1000,
        offered=300,
        unfinished=unfinished,
        seconds=1.0,
        throughput=float(300 - unfinished),
        median_s=median_ms * MS,
        p99_s=median_ms * 2 * MS,
        worst_s=(worst_ms or median_ms * 3) * MS,
        blocked_s=median_ms * MS,
        calls=100,
        mean_batch=3.0,
        cpu_s=0.3,
        waits_us=[],
    )


def stall(path, length, blocked_ms):
    return StallCell(
        path=path,
        length=length,
        admissions=10,
        step_s=0.1 * MS,
        median_s=4.48 * MS,
        p99_s=(4.48 + blocked_ms) * MS,
        worst_s=(4.48 + blocked_ms) * MS,
        admit_s=0.1 * MS,
        first_token_s=(blocked_ms - 0.1) * MS,
        blocked_s=blocked_ms * MS,
        blocked_worst_s=blocked_ms * MS,
        blocked_cpu_s=blocked_ms * MS,
        modelled_blocked_s=None,
        modelled_worst_s=None,
        gaps_us=[],
    )


ARRIVALS = [
    arrival("direct", 300, 1.5), arrival("executor", 300, 1.7), arrival("micro-batch", 300, 1.8),
    arrival("direct", 800, 6), arrival("executor", 800, 7), arrival("micro-batch", 800, 4),
    arrival("direct", 1300, 200), arrival("executor", 1300, 190),
    arrival("micro-batch", 1300, 20),
]  # fmt: skip
COSTS = {128: 0.2, 1024: 1.5, 8192: 15.0}
FIRST = {("fast", 128): 0.05, ("fast", 8192): 3.0, ("slow", 128): 0.01, ("slow", 8192): 0.01}


def encode_record(arrivals=ARRIVALS, partial=False):
    """Costs that can be worked out by hand, in ms a prompt, in each of five processes."""

    def cell(path, metric, batch, length, ms, threads=None):
        return CellSamples(
            path=path, metric=metric, batch=batch, prompt_len=length, threads=threads,
            value_s=ms * MS, intercept_s=0.0, warmup_ns=0, points=[],
        )  # fmt: skip

    timed = [cell("tokenizer(text)", "encode", 1, n, ms) for n, ms in COSTS.items()]
    timed += [cell("tokenizer(list)", "encode_batch", 8, 1024, 1.5, 1)]
    timed += [cell("tokenizer(list)", "encode_batch", 8, 1024, 0.8, 2)]
    timed += [cell(path, "first_token", 1, n, ms) for (path, n), ms in FIRST.items()]
    timed += [cell(path, "admit", 1, n, 0.01) for path, n in FIRST]
    processes = [ProcessRun(cpu=0, clock_floor_ns=40, seconds=1.0, cells=timed)] * 5
    scenario, _ = load_scenario("llama3-chat")
    cells = encode_cells(prepared(), list(COSTS), [1, 8], [128, 8192], ["fast", "slow"], 2, 1 << 14)
    details = EncodeDetails(
        lengths=list(COSTS),
        batches=[1, 8],
        threads=2,
        most_ids_a_call=1 << 14,
        duration_s=1.0,
        max_batch=32,
        wait_s=2 * MS,
        t_step_s=4.48 * MS,
        streams=32,
        admit_every=20,
        prompts=[PromptFacts(length=n, texts=4, mean_ids=n, mean_chars=5 * n) for n in COSTS],
        idle_blocked_s=0.2 * MS,
        arrivals=list(arrivals),
        stalls=[stall("fast", 128, 0.2), stall("fast", 8192, 9.0), stall("slow", 8192, 0.2)],
    )
    rows = encode_rows(cells, processes, scenario)
    modelled_stalls(details, rows)
    return Record(
        kind="encode",
        created="2026-01-02T03:04:05Z",
        command=[],
        detokbench="0.1.0",
        partial=partial,
        scenario={"name": "s"},
        vocabulary={"name": "llama-3", "ids": 128_256, "tokenizer": "Rust", "source": "s"},
        settings={"processes": 5, "processes_finished": 5, "pinned": True, "gc": False},
        machine={"cpu": "a CPU", "cpus_usable": 2, "python": "CPython 3.11"},
        packages={"tokenizers": "0.23", "transformers": "5.24"},
        rows=rows,
        details=msgspec.to_builtins(details),
        processes=processes,
    )


def test_rows_are_medians_of_processes_and_stalls_get_their_model():
    record = encode_record()
    figures = EncodeFigures(record)
    assert figures.one("tokenizer(text)", 1024).median == pytest.approx(1.5 * MS)
    assert figures.many("tokenizer(list)", 8, 1024, 2).median == pytest.approx(0.8 * MS)
    assert figures.one("tokenizer(text)", 1024).ci_low == pytest.approx(1.5 * MS)
    long = details_of(record).stalls[1]
    assert long.modelled_blocked_s == pytest.approx(3.01 * MS)
    assert long.modelled_worst_s == pytest.approx(7.49 * MS)
    # Measured 0.2 ms at 128 ids and 9 ms at 8k: log(4.48/0.2) / log(9/0.2) of the way in log.
    assert figures.stalling_length() == pytest.approx(128 * 64**0.81674, rel=1e-3)


def test_the_reading_says_what_to_do_in_five_sentences_at_most():
    sentences = read_encode(encode_record())
    assert len(sentences) <= 5
    text = " ".join(sentences)
    assert "tokenizer(text) takes 15 ms of one core for 8k ids" in text
    assert "from 800 requests/s on" in text
    assert "stalls the others for over a T_step (4.5 ms) from about 3,800 ids on" in text
    assert "8k ids took 9.0 ms in the median (modelled: 3.0 ms)" in text
    assert "against one call each: 1.0× the speed on 1 thread, 1.9× on 2 threads; mean" in text


@pytest.mark.parametrize(
    ("blocked_ms", "length", "says", "advises"),
    [
        ((-0.1, 4.4), None, "no prompt up to 8k ids stalled the others for a T_step", False),
        ((5.0, 9.0), 0, "even a prompt of 128 ids stalled the others for over a T_step", True),
        ((-0.1, 9.0), 128 * 64**0.924, "from about 6,000 ids on", True),
    ],
)
def test_where_admission_stalls_follows_from_what_was_measured(blocked_ms, length, says, advises):
    record = encode_record()
    details = details_of(record)
    details.stalls = [stall("fast", n, ms) for n, ms in zip((128, 8192), blocked_ms, strict=True)]
    record.details = msgspec.to_builtins(details)
    found = EncodeFigures(record).stalling_length()
    assert found == (length if not length else pytest.approx(length, rel=0.01))
    sentence = read_encode(record)[-1]
    assert says in sentence
    assert ("Admit longer ones" in sentence) == advises


def shown(record, width=200):
    out = io.StringIO()
    print_encode(record, Console(file=out, width=width))
    return " ".join(out.getvalue().split())


def test_the_notes_say_what_was_given_up_and_which_lengths_arrived():
    text = shown(encode_record())
    assert "Of the lengths only 1k arrive." in text
    assert "given up: requests not done 1 s after the last arrival; the waits are of the" in text
    assert "1 s of that is no steady state" in text
    all_lengths = [arrival("direct", 10, 1, length=length) for length in COSTS]
    assert "Of the lengths" not in shown(encode_record(all_lengths))


def test_a_cost_that_the_processes_disagree_on_is_named():
    record = encode_record()
    assert "noisy" not in shown(record)
    row = next(row for row in record.rows if row.prompt_len == 8192)
    row.ci_low, row.ci_high = 0.45 * row.median, 1.55 * row.median
    assert "over ±30 % on 1 of 5 costs of calls, most on tokenizer(text), 8k ids (±55 %)" in shown(
        record
    )


def test_the_worst_gaps_measured_stand_beside_the_worst_modelled():
    axes = encode_figure(encode_record()).axes[-1]
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert axes.get_ylabel() == "worst ITL of the others, ms"
    assert lines["fast, measured"] == pytest.approx([4.68, 13.48])
    assert lines["fast, modelled"] == pytest.approx([4.54, 7.49])


@pytest.mark.parametrize(("lengths", "grid"), [([1024], (1, 3)), ([1024, 8192], (2, 2))])
def test_no_place_of_the_chart_stays_empty(lengths, grid):
    cells = [arrival("direct", 10, 1, length=length) for length in lengths]
    figure = encode_figure(encode_record(cells))
    assert figure.axes[0].get_gridspec().get_geometry() == grid
    assert len(figure.axes) == grid[0] * grid[1]


def test_a_quick_run_with_rates_of_ones_own_leaves_no_length_out():
    def arriving(quick, rates):
        fields = dict.fromkeys(EncodePlan.__dataclass_fields__)
        plan = EncodePlan(**(fields | {"lengths": [1024, 8192], "quick": quick, "rates": rates}))
        return plan.arriving

    assert arriving(True, [100, 400]) == [1024, 8192]
    assert arriving(True, None) == [1024]
    assert arriving(False, None) == [1024, 8192]


def test_a_rate_below_others_that_do_not_pay_is_chance():
    flipped = [
        arrival("direct", 300, 5), arrival("executor", 300, 5), arrival("micro-batch", 300, 2),
        arrival("direct", 800, 2), arrival("executor", 800, 5), arrival("micro-batch", 800, 5),
    ]  # fmt: skip
    assert "at no rate measured" in " ".join(read_encode(encode_record(flipped)))


def test_a_batcher_that_gives_up_more_requests_does_not_pay():
    cells = [
        arrival("direct", 800, 20), arrival("executor", 800, 20),
        arrival("micro-batch", 800, 2, unfinished=50),
    ]  # fmt: skip
    assert "at no rate measured" in " ".join(read_encode(encode_record(cells)))


@pytest.mark.parametrize("width", [60, 72, 80, 86, 100, 104, 118, 140])
def test_the_screen_fits_its_width_and_keeps_what_matters(width):
    out = io.StringIO()
    print_encode(encode_record(), Console(file=out, width=width))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in out.getvalue()
    printed = " ".join(out.getvalue().split())
    for expected in ("tokenizer(text)", "micro-batch", "fast", "slow", "• ", "9.0", "200"):
        assert expected in printed


def test_a_partial_record_without_live_cells_is_shown_and_says_so():
    record = encode_record(arrivals=[], partial=True)
    record.details["stalls"] = []
    out = io.StringIO()
    print_encode(record, Console(file=out, width=120))
    assert "partial: 5 of 5 processes, 0 streams of arrivals" in " ".join(out.getvalue().split())


def test_the_record_and_its_chart_survive_the_disk(tmp_path):
    record = encode_record()
    path = write_record(record, tmp_path / "encode.json")
    assert details_of(read_record(path)) == details_of(record)
    assert [chart.suffix for chart in draw_chart(read_record(path), path)] == [".png", ".svg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lengths", "0"], "--lengths"),
        (["--lengths", "2000k"], "more than a prompt"),
        (["--batch", "0"], "--batch"),
        (["--rate", "1000k"], "more than 100,000 arrivals"),
        (["--duration", "5"], "a number and a unit"),
        (["--wait", "0ms"], "longer than zero"),
        (["--t-step", "1us", "--duration", "1s"], "more than 100,000 steps"),
        (["--vocab", "llama3"], "did you mean 'llama-3'"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_measured(
    capsys, monkeypatch, tmp_path, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert main(["encode", *arguments]) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_tiny_run_ends_in_a_record_with_all_its_cells(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "detokbench", "encode", *TINY, "--no-chart", "--json", "--out",
         str(tmp_path / "r.json")],
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = read_record(tmp_path / "r.json")
    assert json.loads(done.stdout)["kind"] == "encode"
    details = details_of(record)
    assert {cell.way for cell in details.arrivals} == {"direct", "executor", "micro-batch"}
    assert len({cell.offered for cell in details.arrivals}) == 1
    assert all(cell.load and cell.load > 0 for cell in details.arrivals)
    assert [(cell.path, cell.length) for cell in details.stalls] == [
        (path, 128) for path in ("fast", "slow", "byte-table")
    ]
    assert all(cell.modelled_worst_s for cell in details.stalls)
    assert [fact.call for fact in details.gil] == ["tokenizer(text)", "Tokenizer.encode"]
    assert {row.metric for row in record.rows} == {
        "encode", "encode_batch", "admit", "first_token"
    }  # fmt: skip
    assert not record.partial


def test_what_was_measured_before_ctrl_c_is_kept(monkeypatch, tmp_path):
    whole = Manager.ask_alone

    def interrupted(self, request, take_part):
        taken = []

        def take(part):
            take_part(part)
            taken.append(part)
            if len(taken) == 5:
                raise KeyboardInterrupt

        whole(self, request, take)

    monkeypatch.setattr(Manager, "ask_alone", interrupted)
    code = main(["encode", *TINY, "--no-chart", "--json", "--out", str(tmp_path / "r.json")])
    assert code == ExitCode.INTERRUPTED
    record = read_record(tmp_path / "r.json")
    details = details_of(record)
    assert record.partial
    assert record.rows
    assert len(details.gil) == 2
    assert len(details.arrivals) + len(details.stalls) == 2


def test_default_rates_are_shares_of_what_a_thread_encodes():
    class Plan:
        rates, quick, duration_s = None, False, 1.0

    assert _rates(Plan, 1.5 * MS) == [200, 530, 870]
    assert _rates(Plan, None) == []
    Plan.rates = [10, 20]
    assert _rates(Plan, None) == [10.0, 20.0]


def test_default_rates_of_very_short_prompts_stop_at_what_a_loop_can_be_offered():
    class Plan:
        rates, quick, duration_s = None, False, 2.0

    assert _rates(Plan, 0.01 * MS) == [30_000, MOST_ARRIVALS / 2]
    assert len(poisson_times(MOST_ARRIVALS / 2, 2.0, random.Random(0))) == MOST_ARRIVALS


def test_a_long_stream_is_not_waited_for_as_long_again():
    assert (patience_s(0.5), patience_s(600.0)) == (0.5, 5.0)
