"""The parts of ``frontend`` by themselves, on made-up samples: no clock, no processes of others."""

import json
import threading
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.engines import cpu_by_role
from detokbench.live.engines.clients import head_of, is_end, refusal
from detokbench.live.engines.cpu_by_role import CpuMeter
from detokbench.live.engines.figures import Emitted, chunk_ids, window_figures
from detokbench.live.engines.front_end import Process, Threads
from detokbench.live.engines.front_end_judge import why_not
from detokbench.live.engines.frontend_plan import engine_pythons
from detokbench.live.engines.frontend_workload import frontend_workload, open_end_of
from detokbench.live.engines.interrupts import one_interrupt
from detokbench.live.engines.known_texts import KnownText, known_texts
from detokbench.live.engines.search import Bracket, find_limit, twice
from detokbench.live.engines.seen_streams import SeenChunk, SeenStream, read_stream
from detokbench.live.engines.text_check import check_texts
from detokbench.live.engines.variants import variants
from detokbench.model.curves import Line
from detokbench.model.front_ends import front_ends_needed
from detokbench.workload.scenario import load_scenario

MS = 1_000_000
ABC = KnownText(b"abbccc", [0, 1, 3, 6])


# Texts known beforehand


def test_a_text_of_so_long_holds_so_many_whole_ids():
    assert [ABC.ids_in(length) for length in range(8)] == [0, 1, 1, 2, 2, 2, 3, 3]
    assert [ABC.text_of(ids) for ids in range(5)] == ["", "a", "abb", "abbccc", "abbccc"]


@pytest.mark.parametrize("name", ["llama3", "spm_fast", "tekken"])
def test_known_texts_are_what_a_tokenizer_gives(name, request):
    vocabulary = request.getfixturevalue(name)
    prompt, ids = vocabulary.encode("He said:"), vocabulary.encode(" so it was, 你好 and 🙂.")
    (known,) = known_texts(vocabulary, [prompt], [ids])
    whole = vocabulary.raw_decode([*prompt, *ids])[len(vocabulary.raw_decode(prompt)) :]
    assert known.text.decode() == whole
    assert len(known.ends) == len(ids) + 1
    for count in range(len(ids) + 1):
        assert whole.startswith(known.text_of(count))
        assert known.ids_in(known.ends[count]) >= count


def test_rows_and_numbers_of_a_workload(llama3):
    scenario, folder = load_scenario("llama3-chat")
    workload = frontend_workload(llama3, scenario, folder, 0, prompt_len=8, output_len=40)
    assert {len(row) for row in workload.outputs[:-1]} == {40}
    assert all(text.is_ascii for text in workload.texts)
    rows = len(workload.outputs)
    seen = [workload.number(request) for request in range(3 * workload.rows)]
    assert len(set(seen)) == len(seen)
    assert all(number % rows != rows - 1 for number in seen)
    assert all(
        workload.text_of(number) is workload.texts[request % workload.rows]
        for request, number in enumerate(seen)
    )


def test_ids_that_end_inside_a_character(llama3):
    end = open_end_of(llama3)
    assert llama3.raw_decode(end.ids) == end.whole + "\ufffd" * end.bytes_left
    assert end.bytes_left > 0


# What clients saw


def event(text, finish=None):
    choice = {"index": 0, "text": text, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def chunked(*parts):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def cut(data, places):
    ends = [0, *sorted(place % len(data) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(ends) if b > a]


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_an_answer_reads_alike_however_it_is_cut(places):
    events = [event("Grüße "), event("🙂"), event(""), event("\n\nend", "length")]
    data = chunked(events[0], events[1] + events[2], events[3], b"data: [DONE]\n\n")
    pieces = cut(data, places)
    seen = read_stream(7, 4, 0, range(len(pieces)), pieces, ended=True)
    assert "".join(chunk.text for chunk in seen.chunks) == "Grüße 🙂\n\nend"
    assert (seen.finish, seen.empty_events, seen.error) == ("length", 1, "")
    times = [chunk.at_ns for chunk in seen.chunks]
    assert times == sorted(times)
    # An event is there with the read that completes its chunk, and not before.
    ends = [sum(map(len, pieces[: n + 1])) for n in range(len(pieces))]
    last = data.index(events[3]) + len(events[3])
    assert ends[times[-1]] >= last
    assert times[-1] == 0 or ends[times[-1] - 1] < last + 2


def test_an_answer_that_is_not_chunked():
    data = b"HTTP/1.1 200 OK\r\n\r\n" + event("a") + event("b")
    seen = read_stream(0, 2, 0, [5, 6], [data[:40], data[40:]], ended=False)
    assert [(chunk.at_ns, chunk.text) for chunk in seen.chunks] == [(6, "a"), (6, "b")]


def test_chats_reasoning_and_errors():
    def delta(**said):
        return b"data: " + json.dumps({"choices": [{"delta": said}]}).encode() + b"\n\n"

    parts = [
        delta(role="assistant", content=""),
        delta(reasoning_content="so "),
        delta(content="x"),
    ]
    seen = read_stream(0, 2, 0, [1], [chunked(*parts)], ended=True)
    assert [chunk.text for chunk in seen.chunks] == ["so ", "x"]
    broken = chunked(b'data: {"error": {"message": "no such thing"}}\n\n')
    assert read_stream(0, 2, 0, [1], [broken], True).error == "no such thing"
    assert "not an event" in read_stream(0, 2, 0, [1], [chunked(b"data: {\n\n")], True).error


def test_where_an_answer_ends():
    assert is_end(b"", b"data\r\n0\r\n\r\n")
    assert is_end(b"data\r\n", b"0\r\n\r\n")
    assert is_end(b"data\r\n0\r", b"\n\r\n")
    assert not is_end(b"", b"content-length: 10\r\n\r\n")
    assert refusal(b'HTTP/1.1 400 Bad\r\nA: b\r\n\r\n{"x":\n1}') == (
        'the server answered 400 Bad: {"x": 1}'
    )
    assert refusal(b"") == "the server answered nothing"
    assert b"Content-Length: 12\r\n" in head_of("h", 1, "/p") % 12


# Figures of a window


def stream(number, *chunks, sent=0, ended=True, tokens=100):
    return SeenStream(number, tokens, sent, [SeenChunk(*chunk) for chunk in chunks], ended)


def row(ids):
    return KnownText(b"x" * ids, list(range(ids + 1)))


def paced(number, ids, step_ns, start=0):
    return stream(number, *[(start + i * step_ns, "x") for i in range(ids)])


def figures(streams, begin=0, end=inf, t_step=MS, emitted=None):
    known = lambda number: row(100)  # noqa: E731
    return window_figures(streams, known, emitted or Emitted(0, [], {}), begin, end, t_step)


def test_a_stream_that_keeps_pace():
    found = figures([paced(0, 40, MS)])
    assert (found.chunks_per_token, found.stretch) == (1.0, 1.0)
    assert set(found.itl) == {(MS, 1)}
    assert len(found.itl) == 39


def test_a_stream_half_as_fast_stretches_and_merged_chunks_do_not():
    assert figures([paced(0, 40, 2 * MS)]).stretch == 2.0
    merged = stream(0, *[(i * 2 * MS, "xx") for i in range(20)])
    found = figures([merged])
    assert (found.chunks_per_token, found.stretch) == (0.5, 1.0)
    assert set(found.itl) == {(MS, 2)}


def test_the_stretch_is_the_median_of_streams_with_enough_ids():
    streams = [paced(0, 40, MS), paced(1, 40, MS), paced(2, 40, 9 * MS), paced(3, 10, 50 * MS)]
    found = figures(streams)
    assert (found.stretch, len(found.stretches)) == (1.0, 3)


def test_only_what_came_within_the_window_counts():
    found = figures([paced(0, 100, MS)], begin=20 * MS, end=59 * MS)
    assert (found.chunks, found.ids, found.stretch) == (40, 40, 1.0)
    assert len(found.itl) == 40
    assert found.ttft == []
    assert figures([paced(0, 9, MS)], begin=50 * MS).stretch is None


def test_lag_is_of_the_oldest_id_in_a_chunk():
    emitted = Emitted(first_step=10, step_ns=[i * MS for i in range(50)], begun={4: 12})
    seen = stream(4, (3 * MS, "x"), (7 * MS, "xxx"), sent=MS)
    found = figures([seen], emitted=emitted)
    # Id 0 was emitted in step 12, at 2 ms; ids 1 to 3 from 3 ms on.
    assert found.lag == [(MS, 1), (4 * MS, 1)]
    assert found.ttft == [(2 * MS, 1)]
    assert figures([seen], emitted=Emitted(14, [0] * 50, {4: 12})).lag == []  # forgotten steps
    assert figures([stream(5, (MS, "x"))], emitted=emitted).lag == []  # an unknown request


def test_a_chunk_may_end_inside_an_id():
    seen = stream(0, (1, "ab"), (2, "b"), (3, "ccc"))
    assert [(c.first, c.ids) for c in chunk_ids(seen, ABC)] == [(0, 1), (1, 1), (2, 1)]


def test_texts_that_differ_are_told():
    good = stream(0, (1, "ab"), (2, "bccc"), tokens=3)
    part = stream(1, (1, "abb"), ended=False, tokens=3)
    short = stream(2, (1, "abb"), tokens=3)
    wrong = stream(3, (1, "abX"), ended=False, tokens=3)
    known = lambda number: ABC  # noqa: E731
    checked = check_texts([good, part], known)
    assert (checked.checked, checked.wrong) == (2, 0)
    checked = check_texts([good, short, wrong], known)
    assert (checked.checked, checked.wrong) == (3, 2)
    assert checked.first == "request 2, character 3: '' came where 'ccc' was due"
    assert check_texts([stream(0, (1, "a"), tokens=3)], known, stop=["b"]).wrong == 0
    failed = SeenStream(5, 3, 0, [], False, error="no")
    assert check_texts([failed], known).first == "request 5: no"


def test_when_a_front_end_holds():
    assert why_not(1.02, 0.98) == ""
    assert why_not(1.03, 1.0) == "streams take 1.03 of their time"
    assert why_not(1.0, 0.7) == "chunks merge: 0.70 a token"
    assert why_not(None, 1.0) == "too little text came"


# The search


@given(st.floats(1e-4, 1.0), st.floats(1e-4, 1.0))
def test_a_limit_is_enclosed_wherever_it_lies(limit, start):
    tried = []

    def holds(t_step_s):
        tried.append(t_step_s)
        return t_step_s >= limit

    found = find_limit(holds, start, shortest_s=1e-3, longest_s=0.5, width=0.1)
    assert len(tried) < 25
    if limit <= 1e-3:
        assert found == Bracket(1e-3, None)
    elif limit > 0.5:
        assert found == Bracket(None, 0.5)
    else:
        assert found.broke_s < limit <= found.held_s <= found.broke_s * 1.1 * 1.0001


def test_what_is_known_is_not_tried_again():
    tried = []

    def holds(t_step_s):
        tried.append(t_step_s)
        return t_step_s >= 3e-3

    options = {"shortest_s": 1e-3, "longest_s": 0.5, "width": 0.1}
    found = find_limit(holds, 9e-3, held_s=4e-3, broke_s=2e-3, **options)
    assert all(2e-3 < t_step_s < 4e-3 for t_step_s in tried)
    assert found.broke_s < 3e-3 <= found.held_s
    tried.clear()
    find_limit(holds, 9e-3, held_s=4e-3, **options)
    assert max(tried) < 4e-3


def test_what_breaks_is_tried_once_more():
    answers = iter([False, True, False, False, True])
    tries = twice(lambda _: next(answers))
    assert [tries(1.0) for _ in range(3)] == [True, False, True]


def test_front_ends_that_a_batch_needs():
    host = Line(1e-3, 40e-6)
    assert front_ends_needed(64, host, lambda _: 5e-3) == 1
    assert front_ends_needed(256, host, lambda _: 5e-3) == 3
    assert front_ends_needed(256, host, lambda _: 0.5e-3) is None


# CPU by role


def burn():
    sum(i * i for i in range(200_000))


def test_cpu_of_processes_and_of_threads_by_name(monkeypatch):
    used = {1: 100, 2: 50}
    threads = {1: [(1, "main", 40), (11, "tokio-0", 30), (12, "io", 5)]}
    monkeypatch.setattr(cpu_by_role, "process_cpu_ns", used.get)
    monkeypatch.setattr(cpu_by_role, "thread_cpu_ns", lambda pid: iter(threads.get(pid, [])))
    roles = {"rust": [Threads(1, ("tokio",))], "rest": [Threads(1)], "http": [Process(2)]}
    meter = CpuMeter(lambda: roles)
    assert meter.look() == {"rust": 0, "rest": 0, "http": 0}
    used.update({1: 160, 2: 75})
    threads[1] = [(1, "main", 50), (11, "tokio-0", 60), (13, "tokio-1", 20), (12, "io", 5)]
    # 60 ns more in the process, 50 of them in threads named so, one of which is new.
    assert meter.look() == {"rust": 50, "rest": 10, "http": 25}
    threads[1] = [(1, "main", 50)]
    del used[2]  # gone: what it had used is kept
    assert meter.look()["http"] == 25
    assert meter.look()["rust"] == 50


def test_a_process_that_comes_later_counts_from_its_beginning(monkeypatch):
    used = {1: 100, 2: 7}
    monkeypatch.setattr(cpu_by_role, "process_cpu_ns", used.get)
    parts = [Process(1)]
    meter = CpuMeter(lambda: {"http": parts})
    parts.append(Process(2))
    assert meter.look() == {"http": 7}


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux's /proc")
def test_the_clocks_of_this_process_agree_with_what_it_did():
    import os

    pid = os.getpid()
    before = cpu_by_role.process_cpu_ns(pid)
    worker = threading.Thread(target=burn)
    worker.start()
    worker.join()  # its time stays in the process's clock
    assert cpu_by_role.process_cpu_ns(pid) > before
    assert pid in {tid for tid, _, _ in cpu_by_role.thread_cpu_ns(pid)}
    assert cpu_by_role.process_cpu_ns(2**22 - 1) is None
    assert list(cpu_by_role.thread_cpu_ns(2**22 - 1)) == []


# Ctrl-C


def test_a_second_interrupt_does_not_disturb_what_follows_the_first():
    import signal

    before = signal.getsignal(signal.SIGTERM)
    ended = []
    with pytest.raises(KeyboardInterrupt), one_interrupt():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            ended.append("in peace")
    assert ended == ["in peace"]
    assert signal.getsignal(signal.SIGTERM) is before


# What is asked


def test_the_interpreter_of_each_engine(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").touch()
    a, b = (tmp_path / name / "bin" / "python" for name in ("a", "b"))
    engines = ["vllm", "vllm-rs", "sglang"]
    default = Path("here")
    assert engine_pythons(engines, None, default) == dict.fromkeys(engines, default)
    assert engine_pythons(engines, str(tmp_path / "a"), default) == dict.fromkeys(engines, a)
    each = engine_pythons(engines, f"vllm={tmp_path / 'a'},sglang={b}", default)
    assert each == {"vllm": a, "vllm-rs": a, "sglang": b}
    with pytest.raises(DetokbenchError) as caught:
        engine_pythons(engines, "vlm=x", default)
    assert caught.value.exit_code == ExitCode.USAGE


def test_requests_of_each_kind_end_open_for_number_and_length():
    asked = {
        "chat": False, "stop": ["</s>"], "logprobs": 1, "reasoning_parser": "r",
        "tool_call_parser": "t",
    }  # fmt: skip
    found = variants("vllm", **asked)
    for variant in found:
        body = json.loads(variant.body("m", [1, 2]) + ',"seed":5}')
        assert ("prompt" in body) != variant.is_chat
    assert found[-1].flags == ("--enable-auto-tool-choice", "--tool-call-parser", "t")
    assert variants("sglang", **asked)[-1].flags == ("--tool-call-parser", "t")
