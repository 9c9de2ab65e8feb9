"""The parts of a live pipeline that need no process: clocks are given, sockets are left out."""

import asyncio
import os
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streaming import build

from detokbench.errors import DetokbenchError
from detokbench.live.arrivals import ArrivalTimes, Batch, Requests
from detokbench.live.client_streams import OpenStreams, Parsed
from detokbench.live.collector import Chunk, Collector
from detokbench.live.counting import Counters, Reservoir, Sample, Window, is_sampled
from detokbench.live.cpu_load import cpu_loads
from detokbench.live.emission import SglangScheduler, advance_vllm, close_all
from detokbench.live.http_streams import DONE, frame
from detokbench.live.judge import Verdict, judge, slope
from detokbench.live.messages import Decoder, Encoder, RowOutput, RowText, StepOutput, StepText
from detokbench.live.output_processor import OutputProcessor
from detokbench.live.prediction import busiest_cpu, calibration_batches
from detokbench.live.quantiles import quantiles
from detokbench.live.ramp import bisect, judged
from detokbench.live.recording import Recorder, StreamRecord
from detokbench.live.row_texts import AsBatch, OneByOne
from detokbench.live.run_view import Totals
from detokbench.live.schedule import Schedule
from detokbench.live.sockets import bind_pull
from detokbench.live.topology import Processes, rows_each
from detokbench.paths.protocol import Flags
from detokbench.paths.row import PathRow
from detokbench.records.pipeline import PartCost
from detokbench.stops.request import StopRequest
from detokbench.stops.tokens import TokenStops

words = st.text(max_size=8)
numbers = st.integers(0, 2**40)
row_outputs = st.builds(
    RowOutput,
    numbers,
    st.lists(st.integers(0, 200_000), max_size=4),
    st.none() | st.lists(st.integers(0, 200_000), max_size=4),
    st.none() | st.sampled_from(["length", "stop"]),
    st.none() | words,
)
row_texts = st.builds(RowText, numbers, words, st.integers(0, 9), st.none() | words)


@given(st.builds(StepOutput, numbers, numbers, st.lists(row_outputs), st.booleans()))
def test_steps_come_out_as_they_went_in(message):
    assert Decoder(StepOutput).decode(Encoder().encode(message)) == message


@given(st.builds(StepText, numbers, numbers, numbers, st.lists(row_texts), st.booleans()))
def test_texts_come_out_as_they_went_in(message):
    assert Decoder(StepText).decode(Encoder().encode(message)) == message


class FakeClock:
    """A clock that only sleeping and working move."""

    def __init__(self):
        self.now = 1_000

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += round(seconds * 1e9)


def test_a_late_step_does_not_shift_the_next():
    clock = FakeClock()
    schedule = Schedule(1_000_000, clock, clock.sleep)
    begun = []
    for work_ns in (0, 2_500_000, 0, 0, 0):
        begun.append(schedule.wait() - schedule.start)
        clock.now += work_ns
    assert begun == [0, 1_000_000, 3_500_000, 3_500_000, 4_000_000]
    assert (schedule.steps, schedule.late_steps) == (5, 2)
    assert (schedule.drift_ns, schedule.worst_ns) == (0, 1_500_000)


def test_a_sleep_that_ends_early_is_followed_by_another():
    clock = FakeClock()
    schedule = Schedule(1000, clock, lambda seconds: clock.sleep(seconds / 2 + 1e-9))
    schedule.wait()
    assert 0 <= schedule.wait() - schedule.due(1) <= 1


def requests_of(rows, length=12, seed=0):
    return Requests([[1, 2]] * rows, [list(range(length)) for _ in range(rows)], length, seed)


def batch_of(size, arrival="closed", rate=1.0, length=12):
    return Batch(size, requests_of(8, length), arrival, ArrivalTimes(rate, 0))


def test_a_closed_batch_stays_full_and_every_request_gets_its_ids():
    batch = batch_of(5)
    announced = batch.begin()
    got = {}
    for _ in range(60):
        assert len(batch.running) == 5
        emitted = advance_vllm(batch.running)
        for row in emitted.rows:
            assert row.request in announced
            assert (row.prompt is not None) == (row.request not in got)
            got.setdefault(row.request, []).extend(row.new_ids)
        for request in emitted.ended:
            assert got[request.number] == request.ids[: request.length]
        batch.running = emitted.going_on
        announced += batch.refill(0)
    assert len(announced) == len(set(announced)) == batch.arrived


def test_poisson_arrivals_come_at_their_rate_and_wait_for_a_row():
    batch = batch_of(2, "poisson", rate=100.0)
    assert batch.begin() == []
    second = 1_000_000_000
    arrived = sum(len(batch.refill(at)) for at in range(0, 20 * second, second // 10))
    assert 1800 < arrived < 2200
    assert len(batch.running) == 2
    assert len(batch.waiting) == arrived - 2


def test_lengths_follow_from_the_seed():
    def lengths(seed):
        requests = requests_of(4, seed=seed)
        return [requests.make().length for _ in range(20)]

    assert lengths(1) == lengths(1) != lengths(2)
    assert all(3 <= length <= 12 for length in lengths(1))


def test_an_abort_takes_a_request_out_once():
    batch = batch_of(3)
    numbers = batch.begin()
    assert batch.drop({numbers[0], 999}) == 1
    assert batch.drop({numbers[0]}) == 0


def test_close_all_ends_requests_with_what_they_had_got():
    batch = batch_of(3)
    batch.begin()
    emitted = advance_vllm(batch.running)
    rows = close_all(emitted.going_on)
    assert all(row.finish == "length" and row.new_ids == [] for row in rows)


@given(st.lists(st.tuples(words, st.integers(1, 3), st.booleans()), min_size=1))
def test_a_collector_merges_what_is_not_taken_and_loses_nothing(events):
    async def run():
        collector, taken = Collector(), []
        puts = 0
        for at, (text, ids, takes) in enumerate(events):
            puts += collector.put(Chunk(text, ids, at))
            if takes:
                taken.append(await collector.get())
        rest = collector.get_nowait()
        taken += [rest] if rest is not None else []
        assert collector.get_nowait() is None
        assert puts == len(taken)
        return taken

    taken = asyncio.run(run())
    assert "".join(chunk.text for chunk in taken) == "".join(text for text, _, _ in events)
    assert sum(chunk.ids for chunk in taken) == sum(ids for _, ids, _ in events)
    ends = [chunk.last_ns for chunk in taken]
    assert [chunk.first_ns for chunk in taken] == [0, *(end + 1 for end in ends[:-1])]


def test_a_reader_that_waits_gets_what_is_put_later():
    async def run():
        collector = Collector()
        reading = asyncio.create_task(collector.get())
        await asyncio.sleep(0)
        collector.put(Chunk("late", 1, 0))
        return (await reading).text

    assert asyncio.run(run()) == "late"


class Shelf:
    """Collectors by request, without readers."""

    def __init__(self):
        self.collectors = {}

    def open(self, number):
        self.collectors[number] = Collector()
        return self.collectors[number]

    def take(self, number):
        return self.collectors[number].get_nowait()


def processor_on(llama3, stop=(), interval=1):
    shelf, counters = Shelf(), Counters()
    texts = OneByOne(build("fast", llama3), stop)
    return OutputProcessor(texts, shelf, interval, counters), shelf, counters


def rows_of(ids, request=0):
    rows = [RowOutput(request, [token_id]) for token_id in ids]
    rows[0].prompt = []
    return rows


def test_a_stop_string_ends_a_request_in_the_front_end_and_aborts_it_in_the_engine(llama3):
    processor, shelf, counters = processor_on(llama3, stop=(" STOP",))
    ids = llama3.encode("One two STOP three four")
    aborts = [processor.process([row], 0) for row in rows_of(ids)]
    assert [number for each in aborts for number in each] == [0]
    chunk = shelf.take(0)
    assert (chunk.text, chunk.finish) == ("One two", "stop")
    assert processor.dropped_ids == 2
    assert counters.ids == len(ids)


def test_a_stop_at_the_last_id_is_no_abort(llama3):
    processor, shelf, _ = processor_on(llama3, stop=(" STOP",))
    rows = rows_of(llama3.encode("One two STOP"))
    rows[-1].finish = "length"
    assert [processor.process([row], 0) for row in rows] == [[]] * len(rows)
    assert shelf.take(0).finish == "stop"


def test_the_first_id_goes_out_at_once_then_every_third(llama3):
    processor, shelf, _ = processor_on(llama3, interval=3)
    ids = llama3.encode("one two three four five six seven eight nine")
    rows = rows_of(ids)
    rows[-1].finish = "length"
    sent = []
    for at, row in enumerate(rows):
        processor.process([row], at)
        chunk = shelf.take(0)
        if chunk is not None:
            sent.append((chunk.ids, chunk.first_ns, chunk.text))
    assert [ids for ids, _, _ in sent] == [1, 3, 3, len(rows) - 7]
    assert [first for _, first, _ in sent] == [0, 1, 4, 7]
    assert "".join(text for _, _, text in sent) == llama3.decode(ids)


def streamed_as_sglang(llama3, ids, stop, interval=1):
    """What the scheduler and the detokenizer send of one request, and its end."""
    scheduler = SglangScheduler(stop, interval, llama3.encode, llama3.tokenizer.decode)
    texts = AsBatch(build("batch-decode", llama3), stop)
    running = [Requests([[]], [ids], len(ids), 0).make()]
    running[0].length = len(ids)
    sent = []
    while running:
        emitted = scheduler.advance(running)
        sent += texts.take(emitted.rows)
        running = emitted.going_on
    assert len(texts) == 0
    return sent


@pytest.mark.parametrize("stop", ["</answer>", " three", "four five", "ünïcode", "."])
def test_stops_in_the_engine_send_what_the_token_side_sends(llama3, stop):
    text = "One two three four five. Ünïcode ünïcode six</answer> seven</ans eight."
    ids = llama3.encode(text)
    sent = streamed_as_sglang(llama3, ids, (stop,))
    row = PathRow(build("batch-decode", llama3), [], Flags())
    stream = TokenStops(StopRequest(strings=(stop,)), row, llama3.encode, llama3.tokenizer.decode)
    expected = "".join([*(stream.step([i]) for i in ids), stream.end()])
    assert "".join(row.text for row in sent) == expected
    assert sent[-1].finish == "stop"
    assert sum(row.ids for row in sent) == stream.finish.kept_ids


def test_without_stops_the_scheduler_sends_every_k_ids(llama3):
    ids = llama3.encode("one two three four five six seven eight nine ten")
    sent = streamed_as_sglang(llama3, ids, (), interval=4)
    assert [row.ids for row in sent] == [1, 4, 4, len(ids) - 9][: len(sent)]
    assert "".join(row.text for row in sent) == llama3.decode(ids)


def recorder_of():
    counters = Counters()
    window = Window(0.0, 1e6)
    window.see(0)
    return Recorder(window, counters)


@pytest.mark.parametrize("size", [1, 4, 10])
def test_itl_is_that_of_the_tokens_whatever_the_size_of_a_chunk(size):
    recorder = recorder_of()
    record = StreamRecord(0, recorder)
    for chunk in range(50):
        record.take((chunk + 1) * size * 5_000_000, "x", size, 0, None)
    itl = quantiles(recorder.itl.values)
    assert itl.mean == itl.p50 == pytest.approx(5e-3)
    assert quantiles(recorder.gaps.values).p50 == pytest.approx(5e-3 * size)


def test_the_gap_before_an_empty_chunk_is_carried_to_the_next_id():
    recorder = recorder_of()
    record = StreamRecord(3, recorder)
    for at_ms, ids in ((100, 1), (200, 4), (210, 0), (400, 3)):
        record.take(at_ms * 1_000_000, f"{ids}", ids, 0, "length" if at_ms == 400 else None)
    assert [(round(gap / 1e6, 1), ids) for gap, ids in recorder.itl.values] == [(25, 4), (66.7, 3)]
    assert [gap / 1e6 for gap, _ in recorder.gaps.values] == [100, 10, 190]
    assert [(s.request, s.text, s.finish) for s in recorder.streams] == [(3, "1403", "length")]


def test_what_comes_outside_the_window_does_not_count():
    window = Window(1.0, 3.0)
    window.see(5_000_000_000)
    window.see(9_000_000_000)
    assert [window.holds(s * 1_000_000_000) for s in (5, 6, 8, 9)] == [False, True, True, False]


def test_a_reservoir_is_bounded_and_keeps_the_spread():
    reservoir = Reservoir()
    for value in range(300_000):
        reservoir.add(value)
    assert len(reservoir.values) == 1 << 16
    assert quantiles(reservoir.values).p50 == pytest.approx(150_000e-9, rel=0.02)


def test_about_eight_requests_at_a_time_are_sampled():
    for batch in (1, 7, 8, 64, 500):
        taken = sum(is_sampled(number, batch) for number in range(batch))
        assert min(batch, 8) <= taken <= 16


def test_percentiles_need_samples_beyond_them():
    assert quantiles([]).p50 is None
    assert quantiles([(1, 1)] * 3).p50 is None
    few = quantiles([(n, 1) for n in range(20)])
    assert few.p90 is not None and few.p99 is None
    assert quantiles([(n, 1) for n in range(200)]).p99 is not None


def test_a_gap_counts_once_for_each_of_its_ids():
    values = [(1_000, 1)] * 10 + [(9_000, 30)] * 10
    assert quantiles(values).p50 == pytest.approx(9e-6)
    assert quantiles(values).mean == pytest.approx((10 * 1e-6 + 300 * 9e-6) / 310)


def test_totals_are_straight_between_samples_and_hold_beyond():
    totals = Totals([Sample(100, ids=10), Sample(200, ids=30)])
    assert [totals.at(at, lambda s: s.ids) for at in (0, 150, 900)] == [10, 20, 30]
    assert totals.last(lambda s: s.ids) == 30
    assert Totals([]).at(5, lambda s: s.ids) == Totals([]).last(lambda s: s.ids) == 0


@given(st.lists(words, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_a_stream_reads_the_same_wherever_its_bytes_are_cut(texts, rng):
    frames = [frame(7, Chunk(text, 2, 0), 2 * n) for n, text in enumerate(texts, 1)]
    frames.append(frame(7, Chunk("", 0, 0, "length"), 2 * len(texts)))
    wire = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(
        b"%x\r\n%s\r\n" % (len(event), event) for event in [*frames, DONE]
    )
    recorder = recorder_of()
    stream = Parsed(7, 80, recorder, OpenStreams())
    cuts = sorted(rng.sample(range(1, len(wire)), k=min(5, len(wire) - 1)))
    for begin, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        stream.data_received(wire[begin:end])
    assert [s.text for s in recorder.streams] == ["".join(texts)]
    assert recorder.counters.delivered == 2 * len(texts)


def test_events_are_counted_once_whatever_their_text_holds():
    event = frame(1, Chunk('he said "text":"data: {}\n\n', 1, 0), 1)
    recorder = recorder_of()
    Parsed(1, 80, recorder, OpenStreams()).data_received(event)
    assert recorder.counters.chunks == 1


FINE = {
    "chunks_per_token": 1.0, "interval": 1, "lag_s_per_s": 0.0, "itl_s": 1e-3, "t_step_s": 1e-3,
    "steps_share": 1.0, "busiest_cpu": 0.9, "engine_cpu": 0.9,
}  # fmt: skip
IDLE = {"busiest_cpu": 0.67, "engine_cpu": 0.67}


def verdict(topology, **changes):
    return judge(topology, **{**FINE, **changes})


@pytest.mark.parametrize("topology", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("symptom", "says"),
    [
        ({"lag_s_per_s": 0.03}, "falls behind by 30 ms"),
        ({"itl_s": 1.1e-3}, "ITL is 1.10"),
        ({"steps_share": 0.9}, "scheduler is late: 90 %"),
    ],
)
def test_a_late_host_is_broken_where_it_was_busy_and_else_not_judged(topology, symptom, says):
    assert verdict(topology) == verdict(topology, **IDLE) == Verdict("", "")
    busy, idle = verdict(topology, **symptom), verdict(topology, **symptom, **IDLE)
    assert says in busy.broken and busy.not_judged == ""
    assert says in idle.not_judged and idle.broken == ""


def test_chunks_merge_in_vllm_alone_and_by_the_stream_interval():
    merged = {"chunks_per_token": 0.94}
    assert "chunks merge: 0.94" in verdict("vllm", **merged).broken
    assert "chunks merge: 0.94" in verdict("vllm", **merged, **IDLE).not_judged
    assert verdict("sglang", **merged) == Verdict("", "")
    assert verdict("vllm", chunks_per_token=0.25, interval=4) == Verdict("", "")
    assert "chunks merge: 0.00" in verdict("vllm", chunks_per_token=0.0).broken
    assert verdict("vllm", chunks_per_token=None) == Verdict("", "")


def test_what_a_newcomer_met_on_a_busy_machine_is_not_judged():
    met = {"itl_s": 1.72e-3, "chunks_per_token": 0.01, "lag_s_per_s": 0.0}
    assert verdict("vllm", **met, **IDLE).not_judged
    behind = verdict("vllm", lag_s_per_s=0.1, busiest_cpu=0.37, engine_cpu=0.2)
    assert (behind.broken, behind.not_judged) == ("", "falls behind by 100 ms a second")


def test_missing_steps_are_laid_to_the_engines_cpu_alone():
    late = {"steps_share": 0.9, "itl_s": 1.1e-3, "engine_cpu": 0.4}
    assert verdict("sglang", **late, busiest_cpu=0.95).not_judged
    both = verdict("sglang", **late, busiest_cpu=0.95, lag_s_per_s=0.1)
    assert "falls behind" in both.broken


def test_processes_on_one_cpu_keep_it_busy_together():
    shares = {"engine": 0.67, "front-end": 0.33, "detokenizer": 0.58}
    pinned = {"engine": [0], "front-end": [0], "detokenizer": [1]}
    loads = cpu_loads(shares, pinned, 2)
    assert loads == pytest.approx({"engine": 1.0, "front-end": 1.0, "detokenizer": 0.58})
    alike = cpu_loads(shares, dict.fromkeys(shares), 2)
    assert alike == pytest.approx({"engine": 0.79, "front-end": 0.79, "detokenizer": 0.79})
    assert cpu_loads({"a": 0.9, "b": 0.1}, {"a": [0, 1], "b": [0, 1]}, 4) == {"a": 0.9, "b": 0.5}


@pytest.mark.parametrize(
    ("verdicts", "runs", "last"), [("k", 1, "k"), ("nk", 2, "k"), ("nnb", 3, "b"), ("nnnk", 3, "n")]
)
def test_a_run_that_cannot_be_judged_is_made_again_twice_at_most(verdicts, runs, last):
    class Facts:
        def __init__(self, verdict):
            self.verdict = verdict
            self.not_judged = "late" if verdict == "n" else ""

    left = list(verdicts)
    facts = judged(lambda: Facts(left.pop(0)))
    assert (facts.verdict, len(verdicts) - len(left)) == (last, runs)


def test_slope_is_that_of_a_line():
    assert slope([(x, 3 * x + 1) for x in range(5)]) == pytest.approx(3)
    assert slope([(1, 1)]) == slope([(2, 1), (2, 5)]) == 0


@given(st.integers(1, 500), st.integers(0, 500))
def test_bisection_encloses_the_batch_where_it_breaks(limit, low):
    low = min(low, limit - 1)
    held, broke = bisect(low, 512, lambda batch: batch >= limit)
    assert held < limit <= broke or broke == 512
    assert broke - held <= max(1, round(0.03 * broke))


def test_calibration_batches_span_the_ramp():
    assert calibration_batches([1, 100]) == [8, 16, 32, 64, 100]
    assert calibration_batches([2, 4]) == [4, 8]
    assert calibration_batches([32]) == [32, 64]


def test_decoders_get_a_cpu_of_their_own_and_the_rest_share():
    sglang = Processes.of("sglang", 1, 1, http=False)
    assert sglang.names == ("engine", "detokenizer", "front-end")
    assert sglang.cpus([0, 1]) == {"detokenizer": [1], "engine": [0], "front-end": [0]}
    assert set(map(tuple, sglang.cpus([0, 1, 2, 3]).values())) == {(1,), (2,), (3,)}
    many = Processes.of("vllm", 3, 1, http=True)
    assert many.names == ("engine", "front-end-0", "front-end-1", "front-end-2", "clients")
    assert set(many.cpus([0, 1]).values()) == {None}
    assert many.modules()["front-end-2"] == "detokbench.live.vllm_frontend"


def test_sglang_deals_rows_by_hash_so_that_a_detokenizer_may_get_none():
    assert rows_each("vllm", 3, 3, 7) == [3, 2, 2]
    assert rows_each("sglang", 2, 2, 16) == [16, 0]
    assert rows_each("sglang", 1, 4, 5) == [5]
    by_request = rows_each("sglang", 2, 1, 64)
    assert sum(by_request) == 64
    assert min(by_request) > 16


class SglangAsked:
    processes = Processes.of("sglang", 1, 1, http=False)


def test_processes_on_one_cpu_add_up(monkeypatch):
    monkeypatch.setattr("detokbench.live.prediction._usable", lambda: [0, 1])
    seconds = {"engine": 3.0, "detokenizer": 4.0, "front-end": 2.0}
    parts = [
        PartCost(process=name, part="all", batch=1, seconds=value)
        for name, value in seconds.items()
    ]
    assert busiest_cpu(parts, SglangAsked()) == (5.0, "engine + front-end")
    monkeypatch.setattr("detokbench.live.prediction._usable", lambda: [0, 1, 2])
    assert busiest_cpu(parts, SglangAsked()) == (4.0, "detokenizer")


def test_a_folder_with_a_long_name_gets_a_port_instead(tmp_path):
    import zmq

    long = tmp_path / ("x" * 120)
    long.mkdir()
    with zmq.Context() as context:
        for folder, kind in ((tmp_path, "ipc://"), (long, "tcp://127.0.0.1:")):
            is_short = len(os.fsencode(folder)) < 90
            socket, address = bind_pull(context, str(folder), "s")
            assert address.startswith(kind if is_short or folder is long else "tcp://")
            socket.close()
        with pytest.raises(DetokbenchError, match="cannot open the socket"):
            bind_pull(context, str(tmp_path / "no-such"), "s")


def test_records_say_the_same_after_a_round_trip():
    part = PartCost(process="engine", part="emission", batch=3, seconds=random.random())
    assert msgspec.convert(msgspec.to_builtins(part), PartCost) == part
