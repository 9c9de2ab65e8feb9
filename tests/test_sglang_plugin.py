"""Our engine in place of SGLang's scheduler, without SGLang: small stand-ins for its classes."""

import importlib
import json
import os
import subprocess
import sys
import threading
import urllib.request
from array import array
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import sglang_stand_in as stand_in
import zmq
from hypothesis import given
from hypothesis import strategies as st

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.engines import sglang_plugin
from detokbench.live.engines.control import EngineControl, control_address
from detokbench.live.engines.front_end import Launch
from detokbench.live.engines.server_process import tail_of
from detokbench.live.engines.sglang_folder import PACKAGE, lay_plugin
from detokbench.live.engines.sglang_front_end import SglangFrontEnd, SglangRustFrontEnd
from detokbench.live.engines.sglang_plugin import wire
from detokbench.live.engines.sglang_plugin.batch import KNOWN, BatchBuilder
from detokbench.live.engines.sglang_plugin.clock import HELD_STEPS, LATE_NS, StepClock
from detokbench.live.engines.sglang_plugin.engine import Engine
from detokbench.live.engines.sglang_plugin.fields import UnknownFieldsError, built
from detokbench.live.engines.sglang_plugin.outputs import Outputs
from detokbench.live.engines.sglang_plugin.rows import Row
from detokbench.live.engines.sglang_plugin.stops import StopCheck, StopRow
from detokbench.live.engines.sglang_versions import check_message

MS = 1_000_000
EOS = 9
TEXTS = [[20, 21, 22, 23], [30, 31, 32]]


def engine(**more):
    return Engine(StepClock(MS, 0), interval=1, cpu_ns=lambda: 7, **more)


def row(rid, number=0, max_tokens=None, interval=1, **more):
    asked = stand_in.request(rid, number, max_tokens, **more)
    return Row(asked, Outputs(TEXTS, EOS).of(number), EOS, interval, f"stats of {rid}")


def sent_by(one):
    """What a row sends, step by step; None where it sends nothing."""
    sent = []
    while one.finish is None:
        sent.append(list(one.new_ids()) if one.advance() else None)
    return sent


# Messages by field name


def test_a_step_is_built_from_the_fields_that_the_class_has():
    first, second = row("a"), row("b", 1, http_worker_ipc="ipc://worker")
    running = engine()
    running.admit(first)
    running.admit(second)
    build = BatchBuilder(stand_in.BatchTokenIDOutput).build
    begun = build(running.step(MS))
    assert begun.rids == ["a", "b"]
    assert [list(ids) for ids in begun.output_ids] == [[20], [30]]
    # The first ids of a row come after the last five of its prompt.
    assert [list(ids) for ids in begun.decode_ids] == [[3, 4, 5, 6, 7, 20], [3, 4, 5, 6, 7, 30]]
    assert begun.read_offsets == [5, 5]
    assert begun.http_worker_ipcs == [None, "ipc://worker"]
    assert begun.time_stats == ["stats of a", "stats of b"]
    assert begun.output_token_logprobs_val is None
    assert begun.of_a_later_version == "kept"
    went_on = build(running.step(2 * MS))
    assert [list(ids) for ids in went_on.decode_ids] == [[21], [31]]
    assert went_on.completion_tokens == [2, 2]


def test_a_structure_of_msgspec_is_built_as_a_dataclass_is():
    running = engine()
    running.admit(row("a", 1))
    batch = BatchBuilder(stand_in.LaterBatch).build(running.step(MS))
    assert isinstance(batch, stand_in.LaterBatch)
    assert (batch.rids, batch.completion_tokens, batch.weight_versions) == (["a"], [1], None)
    assert list(msgspec.structs.asdict(batch)) == [
        "rids", "finished_reasons", "output_ids", "completion_tokens", "weight_versions",
    ]  # fmt: skip


def test_an_unknown_required_field_is_named():
    later = make_dataclass(
        "BatchTokenIDOutput",
        ["rids", "finished_reasons", "output_ids", "phase_of_the_moon", "tides", ("x", int, 3)],
    )
    with pytest.raises(UnknownFieldsError, match=r"not known here: phase_of_the_moon, tides$"):
        BatchBuilder(later)


def test_a_class_that_lost_a_field_is_named():
    with pytest.raises(UnknownFieldsError, match="has no field output_ids"):
        BatchBuilder(make_dataclass("BatchTokenIDOutput", ["rids", "finished_reasons"]))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("class A:\n  tides: int\nclass BatchTokenIDOutput(A):\n  rids: list", "wants tides"),
        (
            "class BatchTokenIDOutput:\n  rids: list\n  x: int = 3",
            "no finished_reasons, output_ids",
        ),
        ("class Renamed:\n  rids: list", "has no finished_reasons, output_ids, rids"),
    ],
)
def test_the_message_is_checked_in_the_source_before_anything_starts(source, why):
    with pytest.raises(DetokbenchError, match=f"SGLang 9.9: its BatchTokenIDOutput .*{why}"):
        check_message("9.9", source)


def test_every_field_has_one_way_to_be_filled():
    assert len(set(KNOWN)) == len(KNOWN)


def test_for_the_rust_server_only_what_it_reads_is_filled():
    running = engine()
    running.admit(row("a"))
    batch = BatchBuilder(stand_in.BatchTokenIDOutput, rust=True).build(running.step(MS))
    assert [list(ids) for ids in batch.output_ids] == [[20]]
    assert (batch.decode_ids, batch.completion_tokens, batch.time_stats) == ([], [], None)


def test_log_probabilities_go_to_the_rows_that_want_them():
    running = engine()
    running.admit(row("a", return_logprob=True, top_logprobs_num=2))
    running.admit(row("b", 1))
    batch = BatchBuilder(stand_in.BatchTokenIDOutput).build(running.step(MS))
    assert batch.output_token_logprobs_idx == [[20], []]
    assert [len(values) for values in batch.output_token_logprobs_val] == [1, 0]
    assert [len(ids) for ids in batch.output_top_logprobs_idx[0]] == [2]
    assert batch.output_top_logprobs_idx[0][0][0] == 20
    assert batch.input_token_logprobs_val == [[], []]


def test_other_answers_take_what_they_have_fields_for():
    answer = built(stand_in.FlushCacheReqOutput, {"success": True, "rid": 1, "updated": False})
    assert answer == stand_in.FlushCacheReqOutput(success=True)


# When ids are sent


def test_a_row_sends_one_id_a_step_and_ends_with_its_text():
    one = row("a")
    assert sent_by(one) == [[20], [21], [22], [23], [EOS]]
    assert one.finish == {"type": "stop", "matched": EOS}


def test_a_row_that_is_cut_says_length():
    one = row("a", max_tokens=3)
    assert sent_by(one) == [[20], [21], [22]]
    assert one.finish == {"type": "length", "length": 3}


def test_a_row_sends_its_first_id_at_once_and_then_by_its_interval():
    assert sent_by(row("a", interval=2)) == [[20], None, [21, 22], None, [23, EOS]]
    assert sent_by(row("a", interval=1, stream_interval=3)) == [
        [20], None, None, [21, 22, 23], [EOS],
    ]  # fmt: skip


def test_without_streaming_all_comes_at_the_end():
    assert sent_by(row("a", stream=False)) == [None] * 4 + [[20, 21, 22, 23, EOS]]


@given(st.integers(1, 9), st.integers(1, 30), st.integers(1, 40), st.booleans())
def test_every_id_is_sent_once_in_order(interval, length, wanted, stream):
    asked = stand_in.request("a", 0, wanted, stream=stream)
    one = Row(asked, Outputs([range(20, 20 + length)], EOS).of(0), EOS, interval, None)
    sent = [i for part in sent_by(one) for i in part or []]
    assert sent == [*range(20, 20 + length), EOS][:wanted]


def test_requests_begin_with_the_next_step_and_finished_ones_leave():
    running = engine()
    running.admit(row("a", 1, max_tokens=2))
    assert running.answer({"do": "sample"})["waiting"] == 1
    assert [one.rid for one in running.step(MS)] == ["a"]
    running.admit(row("b", 0))
    running.admit(row("HEALTH_CHECK_1", 0, max_tokens=1))
    assert [one.rid for one in running.step(2 * MS)] == ["a", "b", "HEALTH_CHECK_1"]
    sample = running.answer({"do": "sample"})
    assert (sample["running"], sample["waiting"], sample["finished"]) == (1, 0, 2)
    begun = running.answer({"do": "streams"})["streams"]
    assert begun == [(1, 0, 2, "a"), (0, 1, 5, "b")]
    assert running.answer({"do": "streams"}) == {"streams": []}


def test_an_abort_ends_a_row_with_its_next_id():
    running = engine()
    for rid in ("ab", "ac", "b"):
        running.admit(row(rid))
    build = BatchBuilder(stand_in.BatchTokenIDOutput).build
    build(running.step(MS))
    running.abort("a")
    running.abort("a")
    running.abort("")
    batch = build(running.step(2 * MS))
    assert [reason and reason["type"] for reason in batch.finished_reasons] == [
        "abort", "abort", None,
    ]  # fmt: skip
    sample = running.answer({"do": "sample"})
    assert (sample["running"], sample["aborted"], sample["finished"]) == (1, 2, 0)
    running.abort("", every=True)
    assert running.step(3 * MS)[0].finish["type"] == "abort"


def test_ids_and_rows_are_counted_as_they_are_sent():
    running = engine()
    running.admit(row("a", interval=2))
    build = BatchBuilder(stand_in.BatchTokenIDOutput).build
    for step in range(1, 6):
        if rows := running.step(step * MS):
            build(rows)
    sample = running.answer({"do": "sample"})
    assert (sample["ids"], sample["rows"]) == (5, 3)


# Stop strings, by the request class of SGLang


def stop_row(stops, text="one end two", **more):
    asked = stand_in.request("a", 0, 100, stop_strs=stops, **more)
    check = StopCheck(stand_in.Req, stand_in.Letters(), 1000)
    assert not check.missing
    output = Outputs([list(map(ord, text))], EOS).of(0)
    return StopRow(asked, output, EOS, 1, None, check.own_request)


def test_a_stop_string_ends_a_row_and_what_may_begin_one_is_held_back():
    one = stop_row(["end"])
    sent = sent_by(one)
    assert "".join(chr(i) for part in sent if part for i in part) == "one end"
    assert one.finish == {"type": "stop", "matched": "end"}
    # "on" is sent, the "e" of "one" may begin the stop.
    assert [None if part is None else "".join(map(chr, part)) for part in sent] == [
        "o", "n", None, "e ", None, None, "end",
    ]  # fmt: skip


def test_a_stop_string_that_never_comes_leaves_the_text_whole():
    one = stop_row(["nowhere"])
    assert "".join(chr(i) for part in sent_by(one) if part for i in part) == "one end two\t"
    assert one.finish == {"type": "stop", "matched": EOS}


def test_an_aborted_row_ends_without_a_look_for_stops():
    one = stop_row(["one"])
    one.advance()
    one.abort()
    assert one.advance()
    assert one.finish["type"] == "abort"


@pytest.mark.parametrize(
    ("request_class", "tokenizer", "why"),
    [
        (stand_in.Req, None, "no tokenizer"),
        (dataclass(type("Req", (), {"__annotations__": {"rid": str}})), 1, "takes no origin_input"),
        (make_dataclass("Req", ["rid", "origin_input_ids", "sampling_params"]), 1, "has no output"),
    ],
)
def test_what_the_stop_check_lacks_is_said(request_class, tokenizer, why):
    assert why in StopCheck(request_class, tokenizer, None).missing


# The clock


def test_steps_are_due_at_absolute_times_whatever_became_of_those_before():
    clock = StepClock(10 * MS, 0)
    assert clock.due() == 10 * MS
    clock.begin(35 * MS)
    assert clock.due() == 20 * MS
    clock.begin(35 * MS)
    clock.begin(35 * MS)
    clock.begin(40 * MS + LATE_NS)
    assert (clock.steps, clock.late_steps) == (4, 3)
    assert (clock.take_worst(), clock.take_worst()) == (25 * MS, 0)


def test_a_new_pace_counts_from_now():
    clock = StepClock(10 * MS, 0)
    clock.begin(10 * MS)
    clock.pace(2 * MS, 13 * MS)
    assert clock.due() == 15 * MS
    clock.begin(15 * MS)
    assert (clock.due(), clock.steps) == (17 * MS, 2)
    with pytest.raises(ValueError, match="above 0"):
        clock.pace(0, 0)


@given(st.integers(0, 40), st.integers(0, 50))
def test_emission_times_are_those_of_their_steps(steps, since):
    clock = StepClock(MS, 0)
    for step in range(steps):
        clock.begin(step)
        clock.emitted(100 + step)
    first, times = clock.times(since)
    assert first == since
    assert times == [100 + step for step in range(since, steps)]


def test_the_oldest_emission_times_are_forgotten():
    clock = StepClock(MS, 0)
    clock.steps = HELD_STEPS + 4
    clock.begin(0)
    clock.emitted(77)
    first, times = clock.times(0)
    assert (first, first + len(times), times[-1]) == (5, clock.steps, 77)


# The whole engine against a small peer


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """Our engine in a thread, with stand-ins for SGLang's modules; and the ends of its sockets."""
    for name, module in stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    workload = tmp_path / "workload"
    texts = [list(map(ord, text)) for text in ("hello there", "bye now")]
    workload.write_bytes(msgspec.msgpack.encode({"outputs": texts, "eos": EOS}))
    monkeypatch.setenv(sglang_plugin.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(sglang_plugin.WORKLOAD_VARIABLE, str(workload))
    scheduler = importlib.import_module("detokbench.live.engines.sglang_plugin.scheduler")
    monkeypatch.setattr(scheduler.gc, "disable", lambda: None)
    monkeypatch.setattr(scheduler.gc, "freeze", lambda: None)
    with zmq.Context() as context:
        other = stand_in.Peer(context, tmp_path)
        ours = scheduler.EngineScheduler(stand_in.server_args(), other.port_args)
        assert ours.get_init_info()["status"] == "ready"
        loop = threading.Thread(target=ours.run_event_loop)
        loop.start()
        control = EngineControl(control_address(tmp_path))
        control.pace(MS)
        try:
            yield SimpleNamespace(peer=other, control=control, folder=tmp_path)
        finally:
            control.stop()
            loop.join(10)
            control.close()
            for socket in (other.requests, other.ids, other.answers):
                socket.close(0)
        assert not loop.is_alive()


def test_requests_get_their_texts_over_the_sockets(peer):
    peer.peer.ask(stand_in.request("a", 0))
    peer.peer.ask(stand_in.request("b", 1, 4))
    peer.peer.ask(stand_in.request("c", 0, 100, stop_strs=["the"]))
    ids, ends = peer.peer.until_finished(3)
    assert {rid: "".join(map(chr, new)) for rid, new in ids.items()} == {
        "a": "hello there\t",
        "b": "bye ",
        "c": "hello the",
    }
    assert {rid: reason["type"] for rid, reason in ends.items()} == {
        "a": "stop", "b": "length", "c": "stop",
    }  # fmt: skip
    assert ends["c"]["matched"] == "the"


def test_the_supervisor_learns_what_began_and_when_steps_left(peer):
    peer.peer.ask(stand_in.request("a", 1, 3))
    peer.peer.until_finished(1)
    (begun,) = peer.control.streams()
    assert (begun.number, begun.ids, begun.request_id) == (1, 3, "a")
    last = begun.first_step + begun.ids - 1
    times = peer.control.steps(begun.first_step)
    assert times.first == begun.first_step
    assert times.emitted_ns[: begun.ids] == sorted(times.emitted_ns[: begun.ids])
    sample = peer.control.sample()
    assert sample.steps > last
    assert (sample.ids, sample.finished, sample.running) == (3, 1, 0)


def test_other_questions_are_answered_where_they_came_from(peer):
    peer.peer.ask(stand_in.FreezeGCReq())
    peer.peer.ask(stand_in.FlushCacheReqInput(http_worker_ipc="ipc://who"))
    answer = peer.peer.next_of(peer.peer.answers)
    assert answer == stand_in.FlushCacheReqOutput(True, "", "ipc://who")


def test_an_unknown_question_of_the_supervisor_is_an_error(peer):
    with pytest.raises(DetokbenchError, match="t_step_ns must be above 0"):
        peer.control.pace(0)
    assert peer.control.sample().running == 0


def test_the_engine_notes_whether_it_looks_for_stop_strings(peer):
    notes = json.loads((peer.folder / sglang_plugin.NOTES_FILE).read_text())
    assert notes == {"stop_check_missing": ""}


# The Rust server's wire


class RustServerPeer:
    def __init__(self):
        self.waited, self.pushed = [], []

    def wait_request(self, timeout_ms):
        self.waited.append(timeout_ms)

    def drain(self, most):
        return ["request"]

    def push_generation(self, payload, decode_latencies):
        self.pushed.append((payload, decode_latencies))


def test_the_rust_server_is_waited_for_in_short_whole_milliseconds():
    server = RustServerPeer()
    rust = wire.RustServer(server)
    rust.wait(500 * MS)
    rust.wait(7 * MS + 5)
    rust.wait(1000)
    assert server.waited == [20, 5]
    assert rust.requests() == ["request"]
    rust.prepared("batch")()
    assert server.pushed == [("batch", {})]


# The folder on PYTHONPATH


def test_the_plug_in_is_found_by_its_entry_point_and_needs_nothing_of_ours(tmp_path):
    place = lay_plugin(tmp_path)
    code = (
        "import sys; from importlib.metadata import entry_points; "
        "(found,) = entry_points(group='sglang.srt.plugins'); register = found.load(); register(); "
        f"import {PACKAGE}.scheduler; "
        "print(found.name, [m for m in sys.modules if m.split('.')[0] in ('detokbench', 'torch')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(place)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["detokbench", "[]"]


def test_a_sitecustomize_that_ours_hides_still_runs(tmp_path):
    hidden = tmp_path / "theirs"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("print('theirs')")
    paths = os.pathsep.join([str(lay_plugin(tmp_path)), str(hidden)])
    said = subprocess.run(
        [sys.executable, "-c", "print('main')"],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.split() == ["theirs", "main"]


# What a server's log says in the end


@pytest.mark.parametrize(
    ("log", "tail"),
    [
        (
            "[2026-12-01 03:34:44] Subprocess scheduler_0 (pid=7) crashed with exit code -9. So.\n"
            "[2026-12-01 03:34:49] kill_process_tree called: parent_pid=6\n",
            "Subprocess scheduler_0 (pid=7) crashed with exit code -9. So.",
        ),
        (
            "[2026-12-01 03:32:12 TP0] Scheduler hit an exception: Traceback\n"
            "ValueError: no outputs\n\n[2026-12-01 03:32:12] Received sigquit from a child\n",
            "ValueError: no outputs",
        ),
        ("[2026-12-01 03:32:12 TP0] Loading\n", "Loading"),
    ],
)
def test_the_tail_of_a_log_is_what_it_says_without_its_clock(tmp_path, log, tail):
    (tmp_path / "log").write_text(log)
    assert tail_of(tmp_path / "log") == tail


# Without SGLang, and with the real one


@pytest.mark.parametrize("kind", [SglangFrontEnd, SglangRustFrontEnd])
def test_an_environment_without_sglang_is_one_line_and_exit_code_5(kind):
    if importlib.util.find_spec("sglang") is not None:
        pytest.skip("this environment has SGLang")
    with pytest.raises(DetokbenchError, match="no SGLang in the environment of") as caught:
        kind().version(Path(sys.executable))
    assert caught.value.exit_code == ExitCode.BROKEN_SETUP
    assert "\n" not in str(caught.value)


real = pytest.mark.skipif(
    "DETOKBENCH_SGLANG_PYTHON" not in os.environ,
    reason="DETOKBENCH_SGLANG_PYTHON names no interpreter that has SGLang",
)


@real
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", [SglangFrontEnd, SglangRustFrontEnd])
def test_the_real_server_gives_the_texts_back(kind, tmp_path_factory):
    import streaming
    from transformers import LlamaConfig

    folder = tmp_path_factory.mktemp("sg")
    tokenizer = streaming.vocabulary("llama-3").tokenizer
    tokenizer.save_pretrained(folder / "model")
    LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=2048,
        bos_token_id=128_000, eos_token_id=128_001, architectures=["LlamaForCausalLM"],
    ).save_pretrained(folder / "model")  # fmt: skip
    text = "The quick brown fox jumps over the lazy dog; 3 < 5 · naïve 😀 end."
    ids = tokenizer.encode(text, add_special_tokens=False)
    (folder / "workload").write_bytes(
        msgspec.msgpack.encode({"outputs": [[100], ids], "eos": 128_001})
    )
    launch = Launch(
        Path(os.environ["DETOKBENCH_SGLANG_PYTHON"]), folder / "model", folder, 4,
        folder / "workload",
    )  # fmt: skip
    with kind().start(launch) as running:
        running.engine.pace(MS)
        running.check()
        asked = {"model": running.model, "prompt": [5, 6, 7], "seed": 1, "max_tokens": 500}
        whole = complete(running.url, asked)
        assert (whole["text"], whole["finish_reason"]) == (text, "stop")
        cut = complete(running.url, {**asked, "max_tokens": 4})
        assert (cut["text"], cut["finish_reason"]) == (tokenizer.decode(ids[:4]), "length")
        stopped = complete(running.url, {**asked, "stop": [" lazy"]})
        assert stopped["text"] == "The quick brown fox jumps over the"
        assert not running.stop_check_missing()
        assert {"engine"} < set(running.roles())
        assert [begun.number for begun in running.engine.streams() if begun.number == 1] == [1] * 3


def complete(url, asked):
    request = urllib.request.Request(
        f"{url}/v1/completions",
        json.dumps({**asked, "temperature": 0}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]


def test_ids_of_a_row_are_arrays_as_sglang_has_them():
    one = row("a", interval=2)
    one.advance()
    assert one.new_ids() == array("q", [20])
    one.advance()
    one.advance()
    assert one.new_ids() == array("q", [21, 22])
