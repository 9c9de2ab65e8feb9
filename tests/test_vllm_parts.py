"""Where the CPU of vLLM's front end goes: stacks and parts, made up; no engine and no clock."""

import io
import sys
from types import ModuleType

import msgspec
import pytest
from frontend_parts_records import COSTS, US, parts_at, parts_details, parts_record
from rich.console import Console

from detokbench.live.engines.profile_parts import (
    Frame,
    Stack,
    part_of,
    read_stacks,
    sorted_into_parts,
)
from detokbench.live.engines.vllm_parts import BELOW, RUNGS, stands_on
from detokbench.live.engines.vllm_parts.names import MissingError, Names
from detokbench.live.engines.vllm_rungs import step_messages
from detokbench.records.frontend_parts import details_of
from detokbench.records.store import encode, read_record
from detokbench.report.frontend_parts_chart import parts_figure
from detokbench.report.frontend_parts_reading import TITLES, read_parts, warnings_of
from detokbench.report.frontend_parts_screen import print_parts

MAIN = "main (vllm/entrypoints/cli/main.py);Runner.run (asyncio/runners.py)"
HANDLER = (
    f"{MAIN};AsyncLLM._run_output_handler.<locals>.output_handler (vllm/v1/engine/async_llm.py)"
)
PROCESS = f"{HANDLER};OutputProcessor.process_outputs (vllm/v1/engine/output_processor.py)"
STREAM = (
    f"{MAIN};TaskHandle._run_coro (anyio/_core/_tasks.py);"
    "StreamingResponse.stream_response (starlette/responses.py)"
)
EVENTS = (
    f"{STREAM};OpenAIServingCompletion.completion_stream_generator "
    "(vllm/entrypoints/openai/completion/serving.py)"
)
SEND = f"{STREAM};RequestResponseCycle.send (uvicorn/protocols/http/h11_impl.py)"

STACKS = {
    f"{HANDLER};MsgpackDecoder.decode (vllm/v1/serial_utils.py)": "wire",
    f"{MAIN};_AsyncSocket._handle_events (zmq/_future.py)": "wire",
    HANDLER: "wire",
    PROCESS: "output",
    # A function that several parts call belongs to its caller.
    f"{PROCESS};RequestOutputCollector.put (vllm/v1/engine/output_processor.py);"
    "Event.set (asyncio/locks.py)": "output",
    f"{EVENTS};AsyncLLM.generate (vllm/v1/engine/async_llm.py);"
    "RequestOutputCollector.get (vllm/v1/engine/output_processor.py);"
    "Event.wait (asyncio/locks.py)": "hand-over",
    f"{PROCESS};BaseIncrementalDetokenizer.update (vllm/v1/engine/detokenizer.py)": "decode",
    f"{PROCESS};BaseIncrementalDetokenizer.update (vllm/v1/engine/detokenizer.py);"
    "check_stop_strings (vllm/v1/engine/detokenizer.py)": "stop",
    # The class without text is part of every output.
    f"{PROCESS};IncrementalDetokenizer.num_output_tokens (vllm/v1/engine/detokenizer.py)": "output",
    f"{PROCESS};IterationStats.update_from_output (vllm/v1/metrics/stats.py)": "statistics",
    f"{HANDLER};PrometheusStatLogger.record (vllm/v1/metrics/loggers.py);"
    "MutexValue.inc (prometheus_client/values.py)": "statistics",
    f"{EVENTS};BaseModel.model_dump_json (pydantic/main.py)": "json",
    f"{EVENTS};extract_prompt_components (vllm/renderers/inputs/preprocess.py)": "json",
    STREAM: "framework",
    f"{STREAM};CORSMiddleware.send (starlette/middleware/cors.py)": "framework",
    SEND: "socket",
    f"{SEND};Connection.send (h11/_connection.py)": "socket",
    f"{SEND};ABCMeta.__instancecheck__ (<frozen abc>)": "socket",
    f"{MAIN};H11Protocol.data_received (uvicorn/protocols/http/h11_impl.py);"
    "Connection.next_event (h11/_connection.py)": "requests",
    f"{EVENTS};AsyncLLM.generate (vllm/v1/engine/async_llm.py);"
    "AsyncLLM.add_request (vllm/v1/engine/async_llm.py);"
    "Socket.send (zmq/sugar/socket.py)": "requests",
    f"{MAIN};RequestResponseCycle.run_asgi (uvicorn/protocols/http/h11_impl.py);"
    "FastAPI.__call__ (fastapi/applications.py)": "requests",
    MAIN: "loop",
    f"{MAIN};_wait.<locals>._on_completion (asyncio/tasks.py)": "loop",
    f"{MAIN};WeakKeyDictionary.remove (weakref.py)": "other",
    "Thread._bootstrap (threading.py);_worker (concurrent/futures/thread.py)": None,
}


@pytest.mark.parametrize(("text", "part"), STACKS.items(), ids=lambda value: str(value)[-60:])
def test_a_stack_belongs_to_one_part(text, part):
    (stack,) = read_stacks(f"{text} 3")
    assert stack.samples == 3
    assert part_of(stack.frames) == part


def test_every_part_has_a_title_and_a_stack():
    assert set(STACKS.values()) - {None} == set(TITLES)
    assert set(RUNGS) < set(TITLES)


def test_a_frame_is_a_function_and_its_file():
    text = "<module> (a b.py);f.<locals>.g (x/y.py);native 7\n\n"
    assert read_stacks(text) == [
        Stack(
            [Frame("<module>", "a b.py"), Frame("f.<locals>.g", "x/y.py"), Frame("native", "")], 7
        )
    ]


def test_shares_are_of_what_does_not_wait():
    waiting = "_worker (concurrent/futures/thread.py)"
    stacks = read_stacks(f"{SEND} 6\n{PROCESS} 3\n{HANDLER} 1\n{waiting} 90\n")
    parts, samples = sorted_into_parts(stacks)
    assert samples == 10
    assert [(part.name, part.share) for part in parts] == [
        ("socket", 0.6), ("output", 0.3), ("wire", 0.1)
    ]  # fmt: skip
    assert parts[0].frames == [
        ("RequestResponseCycle.send (uvicorn/protocols/http/h11_impl.py)", 0.6)
    ]


def test_rungs_stand_on_each_other_and_stop_beside_them():
    assert [rung for rung in RUNGS if rung not in BELOW] == ["wire"]
    assert all(RUNGS.index(lower) < RUNGS.index(rung) for rung, lower in BELOW.items())
    assert [rung for rung in RUNGS if stands_on("socket", rung)] == [
        rung for rung in RUNGS if rung != "stop"
    ]
    assert not stands_on("decode", "json")
    assert stands_on("stop", "decode")


def test_a_step_has_one_id_of_each_request_and_times_at_the_pace():
    messages = step_messages(["a", "b", "c"], [[1, 2], [70_000, 4, 5]], 4, 0.25)
    steps = [msgspec.msgpack.decode(message) for message in messages]
    assert [[row[0] for row in step[1]] for step in steps] == [["a", "b", "c"]] * 4
    assert [[row[1] for row in step[1]] for step in steps] == [
        [[1], [70_000], [1]], [[2], [4], [2]], [[1], [5], [1]], [[2], [70_000], [2]]
    ]  # fmt: skip
    assert all(step[2]["num_running_reqs"] == 3 for step in steps)
    assert [round(step[3] - steps[0][3], 6) for step in steps] == [0, 0.25, 0.5, 0.75]


def test_what_an_installed_vllm_lacks_is_named_at_once(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    stub = ModuleType("vllm")
    stub.__version__ = "9.9"
    outputs = ModuleType("vllm.outputs")
    monkeypatch.setitem(sys.modules, "vllm", stub)
    monkeypatch.setitem(sys.modules, "vllm.outputs", outputs)
    with pytest.raises(MissingError) as raised:
        Names()
    assert str(raised.value).startswith("vLLM 9.9 has no vllm.")
    assert "vllm.v1.engine.output_processor.OutputProcessor" in str(raised.value)
    assert "vllm.v1.serial_utils.MsgpackDecoder" in str(raised.value)


# --- the record ----------------------------------------------------------------------------


def test_the_sum_leaves_out_what_plain_requests_do_not_have():
    at = parts_at()
    assert at.sum_s / US == pytest.approx(21)  # the middle round
    assert sum(COSTS.values()) - COSTS["stop"] == 20
    assert at.whole_s / US == pytest.approx(26)
    # Round by round 20/25, 21/26, 22/27.
    assert at.share == pytest.approx(21 / 26)


def test_the_share_is_taken_round_by_round():
    at = parts_at()
    at.whole_rounds_s = [20 * US, 84 * US, 44 * US]  # a machine that was slow for a while
    assert at.share == pytest.approx(0.5)
    assert at.sum_s / at.whole_s != pytest.approx(at.share)


def test_a_request_s_cost_follows_from_two_lengths():
    details = parts_details()
    # 25 = token + request/256 and 22 = token + request/1024
    assert details.request_s(details.at[1]) / US == pytest.approx(1024)
    assert details.requests_s(details.at[1]) / US == pytest.approx(4)
    assert details.requests_s(details.at[0]) == 0


def test_a_record_survives_its_file(tmp_path):
    record = parts_record()
    path = tmp_path / "parts.json"
    path.write_bytes(encode(record))
    assert details_of(read_record(path)) == parts_details()
    rows = [row for row in record.rows if row.streams == 128]
    assert {row.role: row.median for row in rows if row.call == "part"}["json"] == 4 * US
    assert [row.median for row in rows if row.call == "whole"] == [26 * US]
    assert {row.metric for row in record.rows} == {"cpu_per_token"}


def test_the_sentences_of_a_record():
    assert read_parts(parts_record()) == [
        "At 32 streams and a step of 10.0 ms a token costs vllm 0.33.0's Python front end 41 µs of "
        "CPU; its parts, each measured on top of the others, come to 21 µs, 51 % of it: less than "
        "the wanted 70 %.",
        "At 128 streams and a step of 10.0 ms a token costs vllm 0.33.0's Python front end 26 µs "
        "of CPU; its parts, each measured on top of the others, come to 21 µs, 81 % of it: at "
        "least 70 %.",
        "What a request costs besides its tokens is lost in the noise at 32 streams.",
        "A request costs 1.02 ms besides its tokens at 128 streams, 4.0 µs for each of 256 (15 % "
        "of the whole; by requests of 256 and 1,024 ids).",
        "By the profile at 128 streams (2,000 samples) the parts are 75 % of the whole; the rest: "
        "requests begun and ended 15 %, event loop itself 8.0 %, other 2.0 %.",
        "The most is in uvicorn and the socket, 30 %: socket (file.py) alone 15 %.",
        "uvicorn writes HTTP with h11 here, in Python; with httptools installed, as vLLM's own "
        "dependencies have it, the socket's part is smaller.",
    ]
    assert "h11" not in " ".join(read_parts(parts_record(parser="httptools")))


def test_the_screen_has_parts_sum_and_whole():
    out = io.StringIO()
    print_parts(parts_record(), Console(file=out, width=110))
    cells = {line[:28].strip(): line.split() for line in out.getvalue().splitlines()}
    assert cells["JSON of the event"][-5:] == ["4.0", "9.8", "4.0", "15", "25"]
    assert cells["sum of the measured parts"][-4:] == ["21", "51", "21", "81"]
    assert cells["whole front end"][-5:] == ["41", "100", "26", "100", "100"]
    assert "(+1.5)" in out.getvalue()


def test_merged_chunks_are_warned_of():
    assert warnings_of(parts_record()) == []
    (warning,) = warnings_of(parts_record(chunks_per_token=0.55))
    assert "0.55 chunks a token" in warning


def test_the_chart_has_a_bar_for_parts_and_whole_of_each_and_the_profile():
    figure = parts_figure(parts_record())
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [
        "B = 32: parts", "B = 32: whole", "B = 128: parts", "B = 128: whole", "B = 128: profile"
    ]  # fmt: skip
    bars = figure.axes[0].patches
    ends = [max(b.get_x() + b.get_width() for b in bars if round(b.get_y() + 0.4) == row)
            for row in range(5)]  # fmt: skip
    assert ends == pytest.approx([21, 41, 21, 26, 26])
