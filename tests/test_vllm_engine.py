"""Our engine's process against the front end's half of the protocol, and its control channel."""

import sys
from contextlib import contextmanager

import msgspec
import pytest
import vllm_peer

from detokbench.errors import DetokbenchError
from detokbench.live.engines.control import EngineControl, control_address
from detokbench.live.engines.server_process import ServerProcess
from detokbench.live.engines.vllm_engine import EnginePlan
from detokbench.live.engines.vllm_handshake import EngineFacts
from detokbench.live.engines.vllm_versions import layout_of

OUTPUTS = [list(range(100, 110)), list(range(200, 260))]
EOS = 7
STEP_NS = 1_000_000


@contextmanager
def engine(peer, folder, max_streams=8, **plan):
    """The process, and the supervisor's side of its control channel."""
    (folder / "w").write_bytes(msgspec.msgpack.encode({"outputs": OUTPUTS, "eos": EOS}))
    plan = EnginePlan(
        handshake=vllm_peer.address(peer.handshake),
        control=control_address(folder),
        workload_file=str(folder / "w"),
        layout=layout_of("0.33.0"),
        facts=EngineFacts("0.33.0", 1024, max_streams),
        **{"t_step_ns": STEP_NS, **plan},
    )
    module = "detokbench.live.engines.vllm_engine"
    command = [sys.executable, "-m", module, msgspec.json.encode(plan).decode()]
    control = EngineControl(plan.control)
    try:
        with ServerProcess("our engine", command, folder / "log") as process:
            yield process, control
    finally:
        control.close()


@pytest.fixture(scope="module")
def two_clients():
    """An engine with two API servers, ready."""
    with (
        vllm_peer.short_folder() as folder,
        vllm_peer.peer(clients=2) as peer,
        engine(peer, folder) as (process, control),
    ):
        said = peer.shake_hands()
        control.wait_until_there(20, process.check)
        yield peer, control, said


def ids(rows):
    return [i for row in rows for i in row.new_token_ids]


def test_it_makes_itself_known_as_a_remote_engine(two_clients):
    _, _, (hello, ready, *responses) = two_clients
    assert hello == {"status": "HELLO", "local": False, "headless": True}
    assert ready == {"status": "READY", "local": False, "headless": True}
    assert [said["max_model_len"] for said in responses] == [1024, 1024]


def test_a_request_gets_the_text_of_its_seed_one_id_a_step(two_clients):
    peer, control, _ = two_clients
    control.streams()
    peer.send(vllm_peer.add("a", seed=3, max_tokens=5))  # 3 is odd: the second text
    rows = peer.rows("a")
    assert ids(rows) == OUTPUTS[1][:5]
    assert [row.finish_reason for row in rows] == [None, None, None, None, 1]
    assert [event["type"] for event in rows[0].events] == [1, 2]
    (started,) = control.streams()
    assert (started.number, started.ids, started.request_id) == (3, 5, "outside-a")
    assert control.streams() == []
    times = control.steps(started.first_step)
    assert times.first == started.first_step
    assert times.emitted_ns == sorted(times.emitted_ns)
    assert len(times.emitted_ns) >= 5


def test_a_text_that_ends_ends_with_its_end(two_clients):
    peer, _, _ = two_clients
    peer.send(vllm_peer.add("b", seed=0, max_tokens=None))
    rows = peer.rows("b")
    assert ids(rows) == [*OUTPUTS[0], EOS]
    assert rows[-1].finish_reason == 0


def test_each_api_server_gets_its_own_requests(two_clients):
    peer, _, _ = two_clients
    for client, name in enumerate(("c", "d")):
        peer.send(vllm_peer.add(name, client, seed=1, max_tokens=40), client)
    assert ids(peer.rows("c", client=0)) == ids(peer.rows("d", client=1)) == OUTPUTS[1][:40]


def test_an_aborted_request_is_heard_of_no_more(two_clients):
    peer, control, _ = two_clients
    before = control.sample()
    control.pace(50_000_000)
    peer.send(vllm_peer.add("e", seed=1, max_tokens=60))
    assert peer.take().outputs[0].request_id == "e"
    peer.send(vllm_peer.abort("e", "never there"))
    peer.send(vllm_peer.utility(0, 1, "is_sleeping"))
    while (step := peer.take()).utility_output is None:
        assert [row.request_id for row in step.outputs] == ["e"]
    control.pace(STEP_NS)
    peer.send(vllm_peer.add("f", seed=1, max_tokens=2))
    assert ids(peer.rows("f")) == [200, 201]
    after = control.sample()
    assert (after.running, after.aborted - before.aborted) == (0, 1)
    assert after.finished - before.finished == 1


def test_calls_are_answered_to_who_asked(two_clients):
    peer, _, _ = two_clients
    peer.send(vllm_peer.utility(1, 5, "get_supported_tasks"), client=1)
    assert peer.take(1).utility_output == [5, None, [None, ["generate"]]]
    peer.send(vllm_peer.utility(0, 6, "add_lora"))
    call_id, failure, result = peer.take(0).utility_output
    assert (call_id, result) == (6, None)
    assert "add_lora" in failure


def test_a_request_for_embeddings_is_refused(two_clients):
    peer, _, _ = two_clients
    frames = [b"\x00", msgspec.msgpack.encode(["g", [1], None, None, {}])]
    peer.send(frames)
    (row,) = peer.rows("g")
    assert (row.new_token_ids, row.finish_reason) == ([], 3)


def test_statistics_go_to_one_api_server_a_step(two_clients):
    peer, control, _ = two_clients
    control.pace(20_000_000)
    for client, name in enumerate(("h", "i")):
        peer.send(vllm_peer.add(name, client, seed=1, max_tokens=6), client)
    steps = [[], []]
    for client in (0, 1):
        while not steps[client] or steps[client][-1].outputs[0].finish_reason is None:
            steps[client].append(peer.take(client))
    control.pace(STEP_NS)
    assert all(step.scheduler_stats is not None for step in steps[0])
    alone = [step.scheduler_stats["num_running_reqs"] == 1 for step in steps[1]
             if step.scheduler_stats is not None]  # fmt: skip
    assert all(alone)  # the second has them only where the first had no rows
    assert steps[0][2].timestamp > steps[0][1].timestamp


def test_totals_add_up(two_clients):
    peer, control, _ = two_clients
    before = control.sample()
    peer.send(vllm_peer.add("j", seed=1, max_tokens=30))
    peer.rows("j")
    after = control.sample()
    assert after.ids - before.ids == after.rows - before.rows == 30
    assert after.steps - before.steps >= 30
    assert after.at_ns > before.at_ns
    assert after.cpu_ns >= before.cpu_ns
    assert after.first_step == 0


def test_log_probabilities_come_where_they_are_asked_for(two_clients):
    peer, _, _ = two_clients
    peer.send(vllm_peer.add("k", seed=0, max_tokens=3, logprobs=2))
    for row in peer.rows("k"):
        tokens, values, ranks, _ = row.new_logprobs
        assert (tokens[1], values[1], ranks[1]) == ([1, 3], [1, 3], [1])


def test_what_cannot_be_done_is_said_over_the_control_channel(two_clients):
    _, control, _ = two_clients
    with pytest.raises(DetokbenchError, match="--stream-interval"):
        control.pace(STEP_NS, interval=4)
    with pytest.raises(DetokbenchError, match="cannot be kept"):
        control.pace(-1)
    assert control.sample().steps > 0  # and it goes on


def test_beyond_its_streams_requests_wait():
    with (
        vllm_peer.short_folder() as folder,
        vllm_peer.peer() as peer,
        engine(peer, folder, max_streams=1) as (process, control),
    ):
        peer.shake_hands()
        control.wait_until_there(20, process.check)
        for name in ("a", "b"):
            peer.send(vllm_peer.add(name, seed=0, max_tokens=4))
        assert ids(peer.rows("a")) == ids(peer.rows("b")) == OUTPUTS[0][:4]
        first, second = control.streams()
        assert second.first_step >= first.first_step + 4


def test_it_ends_when_told_to():
    with (
        vllm_peer.short_folder() as folder,
        vllm_peer.peer() as peer,
        engine(peer, folder, log_stats=False) as (process, control),
    ):
        peer.shake_hands()
        control.wait_until_there(20, process.check)
        peer.send(vllm_peer.add("a", seed=0, max_tokens=1))
        (row,) = peer.rows("a")
        assert (row.events, row.finish_reason) == (None, 1)
        control.stop()
        assert process.wait(20) == 0


def test_a_message_that_it_cannot_read_is_its_last():
    with (
        vllm_peer.short_folder() as folder,
        vllm_peer.peer() as peer,
        engine(peer, folder) as (process, control),
    ):
        peer.shake_hands()
        control.wait_until_there(20, process.check)
        peer.send([b"\x00", b"\xc1"])
        assert process.wait(20) == 5
        with pytest.raises(DetokbenchError, match=r"our engine has ended.*another form"):
            process.check()


def test_an_engine_that_never_answers_is_given_up(tmp_path):
    with vllm_peer.short_folder() as folder:
        control = EngineControl(control_address(folder), timeout_s=0.01)
        with pytest.raises(DetokbenchError, match="has not answered"):
            control.sample()
        with pytest.raises(DetokbenchError, match=r"within 0\.5 s"):
            control.wait_until_there(0.5, lambda: None)
        control.close()
    with pytest.raises(DetokbenchError, match="too long a path"):
        control_address(tmp_path / ("x" * 100))
