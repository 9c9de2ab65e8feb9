"""``probe`` against servers, files and words that mean it harm: nothing grows, hangs or leaks."""

import asyncio
import json
import signal
import threading
from contextlib import contextmanager

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_records import asked, stream

from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live import probe_fetch
from detokbench.live.canned_script import Script
from detokbench.live.itl import TokenGap
from detokbench.live.metrics_page import load_point
from detokbench.live.openai_stream import MOST_TOKENS, read_answer
from detokbench.live.probe_asked import key_of
from detokbench.live.probe_checks import add_up
from detokbench.live.probe_dialect import Dialect
from detokbench.live.probe_distributions import token_distribution
from detokbench.live.probe_fetch import Limits, Raw, fetch_stream
from detokbench.live.probe_judge import judge
from detokbench.live.probe_load import Load
from detokbench.live.probe_prompts import Prompt, read_prompts
from detokbench.live.probe_quiet import ask_without_stream
from detokbench.live.probe_record import record_of
from detokbench.live.probe_run import Collected
from detokbench.live.probe_secrets import blotted, secrets_of
from detokbench.live.probe_session import ProbeSession
from detokbench.live.probe_url import parse_server
from detokbench.live.sse import Event
from detokbench.records.probe import IdCheck, probe_details

KEY = "sk-0123456789abcdef"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
CHUNK = b'data: {"choices": [{"text": "a"}]}\n\n'
DONE = b"data: [DONE]\n\n"
DEEP = b"[" * 100_000 + b"]" * 100_000


@contextmanager
def server(answer):
    """The address of a server; ``answer(path, writer)`` is what it does with each connection."""

    async def serve(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await answer(head.split(b" ")[1].decode(), writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def listen():
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        over = asyncio.Event()
        started.extend((listening.sockets[0].getsockname()[1], asyncio.get_running_loop(), over))
        ready.set()
        await over.wait()

    started, ready = [], threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(listen()), daemon=True)
    thread.start()
    ready.wait()
    port, loop, over = started
    yield f"http://127.0.0.1:{port}"
    loop.call_soon_threadsafe(over.set)
    thread.join()


def fetched(answer, **limits):
    """One request to such a server."""

    async def ask(url):
        async with aiohttp.ClientSession() as session:
            allowed = Limits(**({"seconds": 0.5, "stream_bytes": 1 << 20} | limits))
            return await fetch_stream(session, url, {}, "p", allowed)

    with server(answer) as url:
        return asyncio.run(ask(url))


def sends(*pieces, pause_s=0.0, forever=False):
    """Send the pieces with a pause behind each; ``forever`` repeats the last one."""

    async def answer(path, writer):
        writer.write(HEAD)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)
        while forever:
            writer.write(pieces[-1])
            await writer.drain()
            await asyncio.sleep(max(pause_s, 0.01))

    return answer


def read(*frames):
    return read_answer([Event(float(n), data) for n, data in enumerate(frames)])


def judged(body, ended="end"):
    raw = Raw("p", 1.0, [(2.0, body)], 200, "text/event-stream", ended, ended_s=3.0, size=len(body))
    return judge(raw, None)


def test_the_grace_after_done_counts_once(monkeypatch):
    monkeypatch.setattr(probe_fetch, "_DONE_GRACE_S", 0.2)
    raw = fetched(sends(CHUNK, DONE, pause_s=0.02, forever=True), seconds=30.0)
    assert raw.ended == "end" and raw.done
    assert 0.2 <= raw.ended_s - raw.sent_s < 2
    assert judge(raw, None).outcome == "ok"


@pytest.mark.parametrize(
    "piece", [b": data: [DONE]\n\n", b'data: {"choices": [{"text": "say data: [DONE]"}]}\n\n']
)
def test_what_only_looks_like_done_moves_no_limit(monkeypatch, piece):
    monkeypatch.setattr(probe_fetch, "_DONE_GRACE_S", 0.05)
    raw = fetched(sends(CHUNK, piece, pause_s=0.02, forever=True), seconds=0.4)
    assert not raw.done and raw.ended == "time"
    assert 0.4 <= raw.ended_s - raw.sent_s < 2


@pytest.mark.parametrize("cut", range(1, len(DONE)))
def test_a_done_cut_between_reads_is_seen(cut):
    limits = Limits(1.0, 1 << 20)
    raw = Raw("p", 0.0)

    class Response:
        class content:
            @staticmethod
            async def iter_any():
                for piece in (CHUNK + DONE[:cut], DONE[cut:]):
                    yield piece

    async def take():
        async with asyncio.timeout(1.0) as deadline:
            await probe_fetch._read(Response, raw, limits, deadline)

    asyncio.run(take())
    assert raw.done
    assert b"".join(data for _, data in raw.reads) == CHUNK + DONE


def test_a_stream_of_single_bytes_is_kept_line_by_line():
    raw = fetched(sends(*(bytes([byte]) for byte in CHUNK + DONE), pause_s=0.001), seconds=5.0)
    assert judge(raw, None).outcome == "ok"
    assert len(raw.reads) <= 4
    assert raw.size == len(CHUNK + DONE)


def test_short_lines_count_for_what_they_take():
    raw = fetched(sends(b"data:{}\n\n" * 1000, forever=True), seconds=5.0, stream_bytes=1 << 20)
    assert raw.ended == "bytes"
    assert raw.size < 1 << 18


@pytest.mark.parametrize("count", ["-1", "true", "1.5", str(MOST_TOKENS + 1), "1" + "0" * 25])
def test_a_count_that_cannot_be_is_no_count(count):
    frame = f'{{"choices": [{{"text": "a"}}], "usage": {{"completion_tokens": {count}}}}}'.encode()
    body = b"data: " + frame + b"\n\n" + DONE
    entry = judged(body)
    assert (entry.outcome, entry.note) == ("ok", "1 usage counts that cannot be")
    assert (entry.counted.how, entry.answer.usage) == ("none", None)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 90)), max_size=30))
def test_points_by_token_are_those_of_a_value_for_each(pairs):
    gaps = [TokenGap(*pair) for pair in pairs]
    each = [gap.itl_s for gap in sorted(gaps) for _ in range(gap.tokens)]
    if len(each) > 400:
        each = [each[round(pick * (len(each) - 1) / 399)] for pick in range(400)]
    assert token_distribution(gaps, spread=False).points == each


def test_a_huge_count_takes_no_memory():
    points = token_distribution([TokenGap(0.1, 1e7), TokenGap(0.2, 1e7)], spread=False).points
    assert (len(points), points[0], points[-1]) == (400, 0.1, 0.2)


@pytest.mark.parametrize("frame", [DEEP, b'{"a": ' + DEEP + b"}"])
def test_deep_json_is_bad_json(frame):
    assert read(frame).bad_frame == "JSON nested too deeply"
    raw = Raw("p", 1.0, [(2.0, frame)], 500, "application/json", ended_s=3.0, size=len(frame))
    assert judge(raw, None).outcome == "http-error"


@pytest.mark.parametrize("levels", [10, 300, 600, 900, 950, 990])
def test_json_that_is_just_not_too_deep_can_be_told(levels):
    nested = b"[" * levels + b"]" * levels
    read(b'{"error": ' + nested + b"}")
    read(b'{"choices": [{"text": "", "finish_reason": ' + nested + b"}]}")
    tools = b'[{"function": {"arguments": ' + nested + b"}}]"
    read(b'{"choices": [{"delta": {"tool_calls": ' + tools + b"}}]}")
    judged(b'data: {"choices": [{"text": "a", "token_ids": ' + nested + b"}]}\n\n" + DONE)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ('"stop"', "stop"),
        ('{"type": "length", "length": 8}', "length"),
        ('{"matched": 2}', '{"matched":2}'),
        ("1", "1"),
        ("true", "true"),
        ("null", None),
        (json.dumps("x" * 99), "x" * 59 + "…"),
    ],
)
def test_a_finish_reason_of_any_type_becomes_text(reason, shown):
    frame = f'data: {{"choices": [{{"text": "a", "finish_reason": {reason}}}]}}\n\n'
    entry = judged(frame.encode() + DONE)
    assert entry.outcome == "ok"
    assert entry.answer.finish_reason == shown


def test_an_error_event_and_a_done_without_a_line_end():
    for said in (b'{"message": "boom"}', b"boom"):
        entry = judged(CHUNK + b"event: error\ndata: " + said + b"\n\n")
        assert (entry.outcome, entry.note) == ("error-frame", "boom")
    assert judged(CHUNK + b"data: [DONE]", ended="closed").outcome == "ok"
    assert judged(CHUNK + b"data: [DON", ended="closed").outcome == "cut-off"


def test_secrets_of_an_address_are_all_but_its_origin():
    given = parse_server("https://me:pw%20word@example.org/t0k3n-part/v1?key=qu3ry-value", "chat")
    found = secrets_of(given, KEY)
    said = f"{KEY} me:pw word bWU6cHcgd29yZA== t0k3n-part qu3ry-value /v1/chat pw%20word"
    assert blotted(said, found) == "*** *** *** *** *** /v1/chat ***"
    assert blotted("some people", found) == "some people"  # not the user's name, 'me'


def test_a_key_that_a_server_repeats_is_nowhere_in_the_record(monkeypatch):
    wanted = asked(key=KEY, stop=["x"])
    load = Load(lambda raw: judge(raw, None, wanted.secrets), None, wanted.secrets)
    frame = f'data: {{"choices": [{{"text": "{KEY}", "finish_reason": "{"y" * 50}{KEY}"}}]}}\n\n'
    load.add(Raw("p", 1.0, [(2.0, frame.encode() + DONE)], 200, "text/event-stream", ended_s=3.0))
    error = json.dumps({"error": {"message": "p" * 190 + KEY}}).encode()
    load.add(Raw("p", 1.0, [(2.0, error)], 401, "application/json", ended_s=3.0))
    load.finish(0.1, 1.0)

    class Repeats:
        asked = wanted

        async def judged_stream(self, prompt):
            return judged(frame.encode() + DONE)

        async def whole_text(self, prompt):
            return "x" * 30 + KEY

    collected = Collected(Dialect("completions", KEY, 0, False, False), load)
    collected.comparisons = [asyncio.run(ask_without_stream(Repeats(), Prompt("p", "a")))]
    collected.warnings = [f"no hold-back: {KEY}"]
    asked_none = asked(key=KEY, model=None)
    record = record_of(asked_none, collected, "2026-01-02T03:04:05Z", ["detokbench"]).record
    stored = json.dumps([record.details, record.warnings])
    for start in range(len(KEY) - 6):
        assert KEY[start : start + 6] not in stored
    assert probe_details(record).comparisons[0].verdict == "differs"


def test_an_error_of_http_names_no_address():
    async def answer(path, writer):
        writer.write(b"HTTP/9.9.9 abc\r\n\r\n")

    raw = fetched(answer)
    assert raw.ended == "bad-http"
    assert "127.0.0.1" not in raw.why and "url" not in raw.why


def test_the_load_keeps_no_bytes_and_no_text():
    load = Load(lambda raw: judge(raw, None))
    load.add(stream(Script(usage="continuous")))
    load.finish(0.1, 1.0)
    (entry,) = load.judged
    assert [arrival.tokens for arrival in entry.arrivals] == [1.0] * 24
    assert not any(isinstance(getattr(entry, name), Raw) for name in entry.__slots__)


def test_id_checks_add_up_and_show_the_first_that_differs():
    same = IdCheck(tokenizer="t", requests=1, same=1, unknown_ids=0)
    other = IdCheck(tokenizer="t", requests=1, same=0, unknown_ids=2, prompt="p", at=3)
    whole = add_up([same, other, same])
    assert (whole.requests, whole.same, whole.unknown_ids) == (3, 2, 2)
    assert (whole.prompt, whole.at) == ("p", 3)
    assert add_up([]) is None


def test_ctrl_c_while_parsing_keeps_what_is_parsed_and_is_told():
    def interrupted(raw):
        if raw.sent_s > 2:
            signal.raise_signal(signal.SIGINT)
        return judge(raw, None)

    load = Load(interrupted)
    for sent_s in (1.0, 2.0, 3.0):
        load.add(Raw("p", sent_s, [(4.0, b"no")], 500, "text/plain", ended_s=5.0))
    with pytest.raises(KeyboardInterrupt) as stop:
        load.finish(0.1, 1.0)
    assert [entry.sent_s for entry in load.judged] == [1.0, 2.0]
    collected = Collected(Dialect("completions", None, 0, False, False), load)
    collected.error = stop.value
    outcome = record_of(asked(), collected, "2026-01-02T03:04:05Z", ["detokbench"])
    assert outcome.exit_code() == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("status", "parts", "model"),
    [
        (b"200 OK", (b'{"data": [{"id"', b': "one"}]}'), "one"),
        (b"200 OK", (b'{"data": [{"id": null}, {"id": ""}, 5, {"id": "two"}]}',), "two"),
        (b"401 No", (b'{"data": [{"id": "no"}]}',), None),
        (b"200 OK", (DEEP,), None),
        (b"200 OK", (b'{"data": {"a": 1}}',), None),
    ],
)
def test_the_list_of_models(status, parts, model):
    async def answer(path, writer):
        writer.write(b"HTTP/1.1 " + status + b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)

    async def find(url):
        dialect = Dialect("completions", None, 0, False, False)
        async with aiohttp.ClientSession() as session:
            wanted = asked(server=parse_server(url, "completions"), model=None)
            assert await ProbeSession(wanted, dialect, session).find_model() == (model is not None)
        return dialect.model

    with server(answer) as url:
        assert asyncio.run(find(url)) == model


def test_a_server_that_closes_after_each_answer_unannounced(tmp_path):
    """Each answer has a length and no ``Connection: close``, and is its connection's last."""
    seen = []

    async def answer(path, writer):
        seen.append(path)
        body = CHUNK + DONE
        length = f"Content-Length: {len(body)}\r\n\r\n".encode()
        writer.write(HEAD[:-2] + length + body)
        await writer.drain()

    with server(answer) as url:
        code = main(
            ["probe", url, "--model", "m", "--requests", "20", "--no-compare", "--no-chart",
             "--out", str(tmp_path / "a.json")]
        )  # fmt: skip
    assert code == ExitCode.OK
    assert len([path for path in seen if path.endswith("completions")]) >= 21


@pytest.mark.parametrize("key", ["sk-12345\n", "sk-12345\r\nX: y", "sk-\udcff12345"])
def test_a_key_that_no_header_can_hold(monkeypatch, key):
    monkeypatch.setattr("os.environ", {"KEY": key})
    with pytest.raises(DetokbenchError) as caught:
        key_of("KEY")
    assert caught.value.exit_code == ExitCode.USAGE
    assert "12345" not in str(caught.value)
    assert key_of("OTHER") is None


@pytest.mark.parametrize(
    "url", ["http://a..b", "http://.", f"http://{'a' * 300}", "http://[::g]", "http://h/\udcff"]
)
def test_hosts_that_cannot_be(url):
    with pytest.raises(DetokbenchError) as caught:
        parse_server(url, "chat")
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("url", ["http://[::1]:80", "http://a_b", "http://é.example.", "10.0.0.1"])
def test_hosts_that_can(url):
    assert parse_server(url, "chat").origin


@pytest.mark.parametrize(
    "line",
    [
        ["probe", "http://127.0.0.1:9", "--stop", "\udcff"],
        ["probe", "http://127.0.0.1:9", "--model", "\udcff"],
        ["sweep", "--stop", "\udcff"],
        ["tail-str", "--stop", "\udcff"],
        ["tail-str", "--stop-regex", "\udcff"],
        ["pipeline", "--stop", "\udcff"],
    ],
)
def test_words_that_are_no_utf8(capsys, line):
    assert main(line) == ExitCode.USAGE
    assert f"{line[-2]}: the text is not valid UTF-8" in capsys.readouterr().err


def test_more_streams_than_files(capsys, monkeypatch):
    monkeypatch.setattr("detokbench.live.open_files.allow_many_files", lambda: 100)
    line = ["probe", "http://127.0.0.1:9", "--concurrency", "50", "--requests", "60"]
    assert main(line) == ExitCode.USAGE
    assert "50 streams at a time are more than the 36" in capsys.readouterr().err


def test_a_file_of_prompts(tmp_path):
    path = tmp_path / "p.txt"
    path.write_bytes("\ufeffone\u2028two\x85\r\nthree\x0b\n".encode())
    prompts = read_prompts(path, "completions")
    assert [prompt.text for prompt in prompts] == ["one\u2028two\x85", "three\x0b"]


@pytest.mark.parametrize(
    "line", [b'{"a": ' + DEEP, b'{"messages": ' + b"[" * 200 + b"]" * 200 + b"}"]
)
def test_a_prompt_that_is_nested_too_deeply(tmp_path, line):
    path = tmp_path / "p.txt"
    path.write_bytes(line)
    with pytest.raises(DetokbenchError, match="nested") as caught:
        read_prompts(path, "chat")
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_file_without_end(monkeypatch, tmp_path):
    monkeypatch.setattr("detokbench.live.probe_prompts._MOST_BYTES", 1000)
    path = tmp_path / "p.txt"
    path.write_bytes(b"\0" * 1001)
    with pytest.raises(DetokbenchError, match="is larger than"):
        read_prompts(path, "chat")


def test_a_page_of_infinities():
    page = (
        "vllm:num_requests_running +Inf\nvllm:generation_tokens_total -Inf\n"
        'vllm:num_requests_waiting{a="1"} 1e308\nvllm:num_requests_waiting{a="2"} 1.7e308\n'
        "sglang:gen_throughput 3\n"
    )
    _, point = load_point(page, 0.0)
    assert (point.running, point.tokens, point.waiting) == (None, None, None)
    assert point.tokens_per_s == 3.0
