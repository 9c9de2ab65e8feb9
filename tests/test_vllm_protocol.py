"""vLLM's messages: those recorded from real servers, and ours as its decoder would read them."""

import struct

import msgspec
import pytest
import vllm_peer
from hypothesis import given
from hypothesis import strategies as st

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.engines.emission_times import EmissionTimes
from detokbench.live.engines.pacer import Pacer
from detokbench.live.engines.vllm_batch import Batch
from detokbench.live.engines.vllm_handshake import EngineFacts, ready_response
from detokbench.live.engines.vllm_messages import (
    LENGTH,
    STOP,
    Abort,
    Add,
    Utility,
    decode_request,
    full_row,
    ids_part,
    no_stats,
    stats_part,
    step_message,
    utility_message,
)
from detokbench.live.engines.vllm_outputs import Outputs, WorkloadFile
from detokbench.live.engines.vllm_versions import check_fields, installed_vllm, layout_of

NEW, OLD = layout_of("0.33.0"), layout_of("0.20.2")
IDS = st.integers(0, 200_000)
FIELDS = """
class EngineCoreReadyResponse:
    max_model_len: int
    instance_id: str = ""

class EngineCoreRequest:
    request_id: str
    prompt_token_ids: list
    mm_features: list
    sampling_params: dict
    pooling_params: dict
    arrival_time: float
    lora_request: dict
    cache_salt: str
    data_parallel_rank: int
    prompt_embeds: list = None
    prompt_is_token_ids: list = None
    client_index: int = 0
    current_wave: int = 0
    priority: int = 0
    trace_headers: dict = None
    resumable: bool = False
    external_req_id: str = None

class EngineCoreOutput:
    request_id: str
    new_token_ids: list
    new_logprobs: list = None
    new_prompt_logprobs_tensors: list = None
    pooling_output: list = None
    finish_reason: int = None
    stop_reason: int = None
    events: list = None

class EngineCoreOutputs:
    engine_index: int = 0
    outputs: list = []
    scheduler_stats: dict = None
    timestamp: float = 0.0
    utility_output: list = None

class UtilityOutput:
    call_id: int
    failure_message: str = None
    result: list = None
"""


def workload(*outputs, eos=0):
    return Outputs(WorkloadFile(outputs=list(outputs), eos=eos))


def request(name="r", **facts):
    facts = {"client": 0, "number": 0, "max_tokens": 99, "logprobs": None, **facts}
    return Add(request_id=name, external_id=name, **facts)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("stream", {"number": 7, "max_tokens": 5, "logprobs": None, "client": 0}),
        ("log-probabilities", {"number": None, "max_tokens": 5, "logprobs": 2}),
        ("chat on the second API server", {"number": 1, "client": 1, "max_tokens": 5}),
        ("no limit", {"number": 7, "max_tokens": 16}),  # SamplingParams leaves its default out
        ("rust: stream", {"number": 7, "max_tokens": 5, "client": 0, "logprobs": None}),
        ("rust: log-probabilities", {"number": None, "logprobs": 2}),
    ],
)
def test_requests_of_real_servers_are_read(name, wanted):
    add = decode_request(vllm_peer.recorded(name), NEW)
    assert isinstance(add, Add)
    assert {key: getattr(add, key) for key in wanted} == wanted
    assert add.generates
    assert add.request_id.startswith(add.external_id + "-")  # it adds random characters of its own


def test_aborts_and_calls_of_real_servers_are_read():
    stream = decode_request(vllm_peer.recorded("abort"), NEW)
    assert isinstance(stream, Abort)
    assert stream.request_ids[0].startswith("cmpl-mine-0-")
    assert isinstance(decode_request(vllm_peer.recorded("rust: abort"), NEW), Abort)
    call = decode_request(vllm_peer.recorded("utility with a result"), NEW)
    assert isinstance(call, Utility)
    assert (call.client, call.method) == (1, "get_supported_tasks")
    assert call.call_id == 3232150799039074801


def test_before_0_21_the_client_index_stood_one_place_earlier():
    frames = vllm_peer.recorded("chat on the second API server")
    content = msgspec.msgpack.decode(frames[1])
    del content[10]  # prompt_is_token_ids, which came with 0.21
    older = [frames[0], msgspec.msgpack.encode(content)]
    assert decode_request(older, OLD) == decode_request(frames, NEW)


def test_what_is_left_out_at_the_end_of_a_request_has_its_default():
    frames = vllm_peer.recorded("chat on the second API server")
    short = msgspec.msgpack.encode(msgspec.msgpack.decode(frames[1])[:9])
    add = decode_request([frames[0], short], NEW)
    assert isinstance(add, Add)
    assert (add.client, add.external_id) == (0, add.request_id)


@pytest.mark.parametrize(
    "frames",
    [
        [b"\x00", b"\xc1"],  # no msgpack
        [b"\x00", msgspec.msgpack.encode({"request_id": "r"})],
        [b"\x00", msgspec.msgpack.encode([7, [1], None, {}])],
        [b"\x00", msgspec.msgpack.encode(["r", [1], None, ["seed", 1]])],
        [b"\x01", msgspec.msgpack.encode("r")],
        [b"\x03", msgspec.msgpack.encode([0, 1])],
    ],
)
def test_a_message_of_another_form_is_said_to_be_one(frames):
    with pytest.raises(DetokbenchError, match="another form"):
        decode_request(frames, NEW)


def test_messages_that_do_not_concern_a_single_engine_are_passed_over():
    assert decode_request([b"\x02", msgspec.msgpack.encode([1, 0])], NEW) is None
    assert decode_request([b"READY"], NEW) is None


def test_a_request_for_embeddings_generates_nothing():
    add = decode_request([b"\x00", msgspec.msgpack.encode(["r", [1], None, None, {}])], NEW)
    assert isinstance(add, Add)
    assert not add.generates


@pytest.mark.parametrize("version", ["0.19.3", "0.34.0", "1.0.0", "0.3", "main"])
def test_an_unknown_version_is_a_broken_set_up(version):
    with pytest.raises(DetokbenchError, match=r"not known here.*0\.20 to 0\.33") as caught:
        layout_of(version)
    assert caught.value.exit_code == ExitCode.BROKEN_SETUP


def test_known_versions_have_their_layout():
    assert layout_of("0.20.0").client_index == 10
    assert layout_of("0.20.2.post1").client_index == 10
    assert layout_of("0.21.0").client_index == 11
    assert layout_of("0.33.1.dev7+cpu").client_index == 11


def test_fields_in_an_installed_source_are_compared():
    check_fields("0.33.0", NEW, FIELDS)
    with pytest.raises(
        DetokbenchError, match="field 11 of its EngineCoreRequest is 'current_wave'"
    ):
        check_fields("0.33.0", NEW, FIELDS.replace("    prompt_embeds: list = None\n", ""))
    with pytest.raises(DetokbenchError, match="field 2 of its UtilityOutput is 'nothing'"):
        check_fields("0.33.0", NEW, FIELDS.replace("    result: list = None\n", ""))
    more = FIELDS.replace("max_model_len: int", "max_model_len: int\n    moon_phase: str")
    with pytest.raises(DetokbenchError, match="wants moon_phase"):
        check_fields("0.33.0", NEW, more)


def fake_python(folder, script):
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return python


def test_an_installed_vllm_is_found_without_being_imported(tmp_path):
    package = tmp_path / "vllm"
    (package / "v1" / "engine").mkdir(parents=True)
    (package / "v1" / "engine" / "__init__.py").write_text(FIELDS)
    python = fake_python(tmp_path, f'echo \'["0.24.1", "{package}/__init__.py"]\'')
    found = installed_vllm(python)
    assert (found.version, found.package, found.layout) == ("0.24.1", str(package), NEW)
    (package / "v1" / "engine" / "__init__.py").unlink()
    with pytest.raises(DetokbenchError, match=r"vLLM 0\.24\.1: no .*__init__\.py to read"):
        installed_vllm(python)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo null", "there is no vLLM in the environment of"),
        ("echo it broke >&2; exit 1", "it broke"),
        ("echo nonsense", "cannot ask"),
    ],
)
def test_an_interpreter_without_vllm_is_named(tmp_path, script, why):
    with pytest.raises(DetokbenchError, match=why) as caught:
        installed_vllm(fake_python(tmp_path, script))
    assert "\n" not in str(caught.value)


def test_the_ready_response_is_complete():
    said = ready_response(EngineFacts("0.33.0", max_model_len=1024, max_num_seqs=8))
    assert said["max_model_len"] == 1024
    assert said["num_gpu_blocks"] * said["block_size"] >= 8 * 1024
    assert said["vllm_version"] == "0.33.0"
    assert said["dp_stats_address"] is None


ROWS = st.tuples(st.text(max_size=40), st.lists(IDS, max_size=4), st.none() | st.integers(0, 4))


@given(st.lists(ROWS, max_size=20))
def test_a_step_comes_out_as_it_went_in(rows):
    encoded = [full_row(name, ids_part(ids), finish_reason=why) for name, ids, why in rows]
    read = vllm_peer.decode(step_message(encoded, no_stats(), 1.5))
    assert [(r.request_id, r.new_token_ids, r.finish_reason) for r in read.outputs] == rows
    assert (read.engine_index, read.scheduler_stats, read.timestamp) == (0, None, 1.5)
    assert all(r.new_logprobs is None and r.events is None for r in read.outputs)


def test_a_step_may_have_thousands_of_rows():
    rows = [full_row(str(i), ids_part([i])) for i in range(70_000)]
    read = vllm_peer.decode(step_message(rows, stats_part(70_000, 3, 9, 0.5), 2.0))
    assert [row.new_token_ids for row in read.outputs] == [[i] for i in range(70_000)]
    assert read.scheduler_stats is not None
    assert read.scheduler_stats["num_running_reqs"] == 70_000


@pytest.mark.parametrize(("failure", "answer"), [("", [None, ["generate"]]), ("no", None)])
def test_a_call_is_answered_under_its_id(failure, answer):
    message = utility_message(1 << 63, ["generate"], 1.0, failure)
    said = vllm_peer.decode(message).utility_output
    assert said == [1 << 63, failure or None, answer]


def array_of(part):
    """An array of vLLM's, as its decoder reads it."""
    dtype, shape, data = part
    assert data.code == 3
    kind = {"<i4": "i", "<f4": "f"}[dtype]
    flat = struct.unpack(f"<{len(data.data) // 4}{kind}", data.data)
    if len(shape) == 1:
        return list(flat)
    return [list(flat[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])]


@given(
    output=st.lists(IDS, max_size=30),
    max_tokens=st.none() | st.integers(1, 40),
    k=st.none() | st.integers(0, 8),
    number=st.none() | st.integers(0, 1 << 40),
)
def test_rows_of_a_request_are_its_text_with_one_end(output, max_tokens, k, number):
    outputs = workload(output, eos=3)
    ids, reason = outputs.ids_of(number, max_tokens)
    assert ids == [*output, 3][: max_tokens or 99]
    assert reason == (STOP if max_tokens is None or max_tokens > len(output) else LENGTH)
    rows, steps = outputs.rows(request(number=number, max_tokens=max_tokens, logprobs=k), 1.0, 2.0)
    read = vllm_peer.decode(step_message(list(rows), no_stats(), 0.1)).outputs
    assert [row.new_token_ids for row in read] == [[i] for i in ids]
    assert len(read) == steps
    assert [row.finish_reason for row in read] == [None] * (steps - 1) + [reason]
    assert [event["type"] for event in read[0].events] == [1, 2]
    assert all(row.events is None for row in read[1:])
    for row, own in zip(read, ids, strict=True):
        if k is None:
            assert row.new_logprobs is None
            continue
        tokens, values, ranks, more = row.new_logprobs
        (width,) = {len(array_of(tokens)[0]), len(array_of(values)[0])}
        assert width == k + 1
        assert array_of(tokens)[0][: min(k, 1) + 1] == [own] * (min(k, 1) + 1)
        assert len(set(array_of(tokens)[0])) == max(k, 1)
        assert sorted(array_of(values)[0], reverse=True) == array_of(values)[0]
        assert (array_of(ranks), more) == ([1], None)


def test_a_workload_without_texts_is_refused(tmp_path):
    with pytest.raises(DetokbenchError, match="no outputs"):
        workload()
    with pytest.raises(DetokbenchError, match="cannot read the workload"):
        Outputs.read(tmp_path / "none")


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 1), st.integers(1, 6)),
        st.tuples(st.just("abort"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("step"), st.just(0), st.just(0)),
    ),
    max_size=80,
)


@given(OPERATIONS)
def test_every_request_gets_its_rows_once_and_none_after_its_abort(operations):
    batch = Batch(workload([10, 11, 12, 13], eos=9), clients=2, max_streams=3, log_stats=False)
    wanted, got, gone = {}, {}, set()
    step = 0
    for what, first, second in [*operations, *[("step", 0, 0)] * 200]:
        if what == "add":
            name = str(len(wanted))
            wanted[name] = (first, [10, 11, 12, 13, 9][:second])
            got[name] = []
            batch.add(request(name, client=first, max_tokens=second), 0.0)
        elif what == "abort":
            gone.add(str(first))
            batch.abort([str(first)])
        else:
            batch.admit(step, 0.0)
            assert batch.running <= 3
            for client in (0, 1):
                rows = batch.rows(client)
                for row in vllm_peer.decode(step_message(rows, no_stats(), 0.1)).outputs:
                    assert row.request_id not in gone
                    assert wanted[row.request_id][0] == client
                    got[row.request_id] += row.new_token_ids
                    assert (row.finish_reason is not None) == (
                        got[row.request_id] == wanted[row.request_id][1]
                    )
            batch.end(step)
            step += 1
        gone &= set(wanted)  # an abort may come for what is long over, or never was
    assert all(got[name] == ids for name, (_, ids) in wanted.items() if name not in gone)
    assert (batch.running, batch.waiting) == (0, 0)
    assert batch.ids == sum(map(len, got.values()))
    started = [stream.request_id for stream in batch.take_started()]
    assert len(started) == len(set(started))
    assert set(started) >= {name for name, ids in got.items() if ids}
    assert batch.take_started() == []


def test_requests_beyond_the_limit_wait_in_their_order():
    batch = Batch(workload([1, 2], eos=9), clients=1, max_streams=1)
    for name in "ab":
        batch.add(request(name, max_tokens=2), 0.0)
    batch.admit(4, 0.0)
    assert (batch.running, batch.waiting) == (1, 1)
    batch.rows(0)
    batch.end(4)
    batch.admit(5, 0.0)
    assert batch.running == 1
    batch.rows(0)
    batch.end(5)
    batch.admit(6, 0.0)
    started = [(s.request_id, s.first_step, s.ids) for s in batch.take_started()]
    assert started == [("a", 4, 2), ("b", 6, 2)]


class Clock:
    def __init__(self):
        self.now = 1000

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += round(seconds * 1e9)


def test_a_change_of_pace_keeps_count_and_loses_no_time():
    clock = Clock()
    pacer = Pacer(1_000_000, clock, clock.sleep)
    begun = [pacer.wait() for _ in range(3)]
    assert begun == [1000, 1_001_000, 2_001_000]
    pacer.change(5_000_000)
    assert pacer.next_due == 7_001_000  # one new step after the last one
    assert pacer.wait() == 7_001_000
    clock.now += 20_000_000  # the process was held up
    pacer.change(5_000_000)
    assert pacer.next_due == clock.now
    pacer.wait()
    assert (pacer.steps, pacer.late_steps) == (5, 0)
    clock.now += 6_000_000
    pacer.wait()
    assert pacer.late_steps == 1
    assert (pacer.take_worst_ns(), pacer.take_worst_ns()) == (1_000_000, 0)
    with pytest.raises(DetokbenchError, match="cannot be kept"):
        pacer.change(0)


def test_the_latest_emission_times_are_held():
    times = EmissionTimes(held=4)
    for i in range(10):
        times.add(100 + i)
    assert times.first == 6
    assert times.since(0) == times.since(6)
    assert (times.since(8).first, times.since(8).emitted_ns) == (8, [108, 109])
    assert times.since(99).emitted_ns == []
