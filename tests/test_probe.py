"""``probe`` against a server that plays what it is told to."""

import io
import json
from itertools import pairwise

import msgspec
import pytest
import streaming
from rich.console import Console

from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.canned_script import Script
from detokbench.live.canned_server import canned_server
from detokbench.live.probe_url import command_without_url, parse_server
from detokbench.records.probe import probe_details
from detokbench.records.schema import Record
from detokbench.report.probe_chart import probe_figure
from detokbench.report.probe_screen import print_probe

BEHAVIOURS = {
    "error-json": "http-error",
    "error-html": "http-error",
    "error-frame": "error-frame",
    "html": "bad-content-type",
    "bad-json": "bad-json",
    "long-line": "too-long-line",
    "close-mid-stream": "cut-off",
    "close-mid-line": "cut-off",
    "endless": "endless",
    "stall": "timeout",
    "no-answer": "timeout",
    "close-at-once": "empty",
    "nothing": "empty",
}
QUIET = ("--no-compare", "--no-chart")


@pytest.fixture
def run(tmp_path):
    """Probe a server and give back the exit code, the record and its details."""

    def _run(url, *options, extra=QUIET):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        code = main(["probe", url, "--out", str(out), *options, *extra])
        record = msgspec.json.decode(out.read_bytes(), type=Record)
        return code, record, probe_details(record)

    return _run


@pytest.fixture
def loaded_once(monkeypatch):
    """The tokenizer that the tests share, in place of one loaded anew by each command."""
    monkeypatch.setattr("detokbench.vocab.registry.load_vocabulary", streaming.vocabulary)


def prompts_file(tmp_path, *lines):
    path = tmp_path / "prompts.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def screen(record, width=120):
    out = io.StringIO()
    print_probe(record, Console(file=out, width=width))
    return out.getvalue()


def words(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """One run over every bad behaviour, two requests each, good ones in between."""
    folder = tmp_path_factory.mktemp("bad")
    lines = [line for name in BEHAVIOURS for line in (name, "good")]
    path = prompts_file(folder, *lines)
    scripts = {name: Script(behaviour=name, per_chunk=2) for name in BEHAVIOURS}
    out = folder / "bad.json"
    with canned_server(scripts) as server:
        code = main(
            ["probe", server.url, "--prompts", path, "--requests", str(len(lines)),
             "--concurrency", "4", "--timeout", "1s", "--out", str(out), *QUIET]
        )  # fmt: skip
    return code, msgspec.json.decode(out.read_bytes(), type=Record)


@pytest.mark.parametrize(("number", "behaviour"), list(enumerate(BEHAVIOURS)))
def test_each_bad_behaviour_is_a_named_outcome(bad, number, behaviour):
    _, record = bad
    (facts,) = [
        facts
        for facts in probe_details(record).requests
        if facts.prompt == f"prompts.txt:{2 * number + 1}"
    ]
    assert facts.outcome == BEHAVIOURS[behaviour]
    assert facts.seconds < 4
    assert facts.itl_s is None and facts.ttft_s is None
    assert facts.read_bytes < 12 << 20


def test_the_run_goes_on_and_counts_them(bad):
    code, record = bad
    details = probe_details(record)
    counted = {count.outcome: count.requests for count in details.outcomes}
    assert counted.pop("ok") == len(BEHAVIOURS)
    expected = list(BEHAVIOURS.values())
    assert counted == {outcome: expected.count(outcome) for outcome in expected}
    assert code == ExitCode.FAILED_CHECK
    notes = {facts.note for facts in details.requests}
    assert "400: the context is too long" in notes
    assert any(n.startswith("400: ") and n.endswith("(text/html, 46 bytes)") for n in notes)
    assert "the engine died" in notes
    assert "text/html, not text/event-stream" in notes
    shown = words(screen(record))
    assert "http-error 2 another status than 200 (400: the context is too long)" in shown


def test_what_a_good_server_streams(run):
    script = Script(usage="continuous", holds=(3, 4), tokens=("a", "b\ufffd", *"cdefghijkl"))
    with canned_server(default=script) as server:
        code, _, details = run(server.url, "--api", "chat", "--requests", "3")
    assert code == ExitCode.OK
    assert details.model == "canned"
    assert [facts.outcome for facts in details.requests] == ["ok"] * 3
    for facts in details.requests:
        assert (facts.chunks, facts.empty_chunks, facts.replacement_chunks) == (12, 2, 1)
        assert facts.other_frames == 3  # role, final, usage
        assert (facts.tokens, facts.counted_by) == (12, "usage")
        assert facts.characters == 13
    assert details.ttft.samples == 3
    assert (details.ttft.p50_s, details.ttft.p90_s) == (None, None)
    assert (details.chunk_gap.samples, details.itl.samples) == (33, 33)
    assert details.itl.p90_s is not None
    assert details.itl.p99_s is None


@pytest.mark.parametrize("api", ["completions", "chat"])
@pytest.mark.parametrize(
    ("fields", "options", "how"),
    [
        ({"usage": "continuous"}, (), "usage"),
        ({"usage": "none", "logprobs": True}, ("--logprobs",), "logprobs"),
        ({"usage": "none", "give_ids": True}, ("--token-ids",), "ids"),
        ({"usage": "final"}, (), "usage-total"),
        ({"usage": "none"}, (), "none"),
    ],
)
def test_tokens_are_counted_by_what_the_server_gives(run, api, fields, options, how):
    with canned_server(default=Script(per_chunk=5, **fields)) as server:
        _, record, details = run(server.url, "--api", api, "--requests", "2", *options)
    assert details.counted_by == how
    assert {facts.tokens for facts in details.requests} == {None if how == "none" else 24}
    assert (details.itl.mean_s is None) == (how == "none")
    assert details.counts_disagree == 0
    asked = [body for body in server.requests if body["stream"]]
    assert all(("logprobs" in body) == ("--logprobs" in options) for body in asked)
    assert all(("return_token_ids" in body) == ("--token-ids" in options) for body in asked)
    assert words(screen(record))


def test_the_tokenizer_counts_the_whole_text_and_never_a_chunk(run, llama3, loaded_once):
    text = "Hello there, how are you? 🤗 fine"
    ids = llama3.encode(text)
    tokens = [llama3.decode(ids[:end]) for end in range(len(ids) + 1)]
    tokens = [text.rstrip("\ufffd") for text in tokens]
    deltas = [b[len(a) :] for a, b in pairwise(tokens)]
    assert len(deltas) == 11 and "" in deltas
    script = Script(usage="none", tokens=tuple(deltas))
    with canned_server(default=script) as server:
        _, _, details = run(server.url, "--requests", "1", "--tokenizer", "llama-3")
    (facts,) = details.requests
    assert (facts.tokens, facts.counted_by) == (11, "tokenizer")
    assert details.itl.mean_s is not None


def test_cumulative_chunks_are_read_as_deltas(run):
    script = Script(cumulative=True, give_ids=True, tokens=tuple("abcdefghij"), usage="none")
    with canned_server(default=script) as server:
        _, record, details = run(server.url, "--requests", "1", "--token-ids", "--api", "chat")
    (facts,) = details.requests
    assert facts.cumulative
    assert (facts.characters, facts.tokens) == (10, 10)
    assert any("cumulative" in warning for warning in record.warnings)


def test_counts_by_two_ways_are_compared(run):
    options = ("--requests", "1", "--token-ids", "--logprobs")
    script = Script(give_ids=True, logprobs=True, usage="continuous")
    with canned_server(default=script) as server:
        _, _, details = run(server.url, *options)
    assert details.requests[0].totals == {"ids": 24, "usage": 24, "logprobs": 24}
    assert details.counts_disagree == 0
    script = Script(give_ids=True, ids=tuple(range(23)), usage="continuous")
    with canned_server(default=script) as server:
        _, record, details = run(server.url, *options)
    assert details.requests[0].totals == {"ids": 23, "usage": 24}
    assert details.counts_disagree == 1
    assert "Counts disagree, as for split-characters: ids 23, usage 24." in words(screen(record))


def test_a_stream_without_done_is_named_and_measured(run):
    with canned_server(default=Script(done=False, usage="continuous")) as server:
        code, _, details = run(server.url, "--requests", "2")
    assert [count.outcome for count in details.outcomes] == ["no-done"]
    assert details.itl.samples == 46
    assert code == ExitCode.OK


def test_characters_cut_between_reads_arrive_whole(run):
    script = Script(tokens=tuple("我很感谢你的热情🤗"), cut_bytes=1, usage="continuous")
    with canned_server(default=script) as server:
        _, _, details = run(server.url, "--requests", "1", extra=("--no-chart",))
    (facts,) = details.requests
    assert (facts.outcome, facts.characters, facts.replacement_chunks) == ("ok", 9, 0)
    assert {entry.verdict for entry in details.comparisons} == {"same"}


def test_fields_that_a_server_refuses_are_left_out(run):
    refuses = frozenset({"return_token_ids", "seed"})
    with canned_server(refuses=refuses) as server:
        code, record, details = run(server.url, "--requests", "2", "--token-ids")
    assert code == ExitCode.OK
    assert sorted(details.fields_refused) == ["return_token_ids", "seed"]
    assert "stream_options" in details.fields_taken
    assert not refuses & server.requests[-1].keys()
    shown = words(screen(record))
    assert "refuses the fields return_token_ids" in shown or "seed, return_token_ids" in shown
    assert "without ids the text was not checked against them" in shown


def test_streamed_text_against_the_answer_without_a_stream(run):
    with canned_server(default=Script(whole_text=Script().text.replace("w7", "w8"))) as server:
        _, record, details = run(server.url, "--requests", "1", extra=("--no-chart",))
    assert {entry.verdict for entry in details.comparisons} == {"differs"}
    entry = details.comparisons[0]
    assert entry.at == Script().text.index("w7") + 1
    assert "w7" in entry.streamed and "w8" in entry.whole
    shown = words(screen(record))
    assert "Streamed text: equals the unstreamed answer in 0 of 3 prompts." in shown
    assert f"differs from character {entry.at}" in shown


def test_a_request_is_sent_with_and_without_the_stop_string_in_turn(run):
    script = Script(hold_for_stops=True)
    with canned_server(default=script) as server:
        _, record, details = run(server.url, "--requests", "1", "--stop", "x" * 30)
    stops = [body.get("stop") for body in server.requests]
    assert stops[-6:] == [None, ["x" * 30]] * 3
    assert not any(stops[:-6])
    hold = details.hold_back
    assert (hold.stop, hold.characters, hold.repeats) == (["x" * 30], len(script.text), 3)
    assert f"over {len(script.text)} characters, 3 runs each" in words(screen(record))


def test_a_server_s_own_load(run):
    page = (
        "# TYPE vllm:num_requests_running gauge\n"
        'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_running{engine="1"} 3.0\n'
        'vllm:inter_token_latency_seconds_sum{engine="0"} 1.5\n'
        'vllm:inter_token_latency_seconds_count{engine="0"} 100\n'
    )
    with canned_server(metrics=page) as server:
        _, record, details = run(server.url, "--requests", "1")
    load = details.server_load
    assert (load.engine, load.before.running, load.most_running) == ("vllm", 5.0, 5.0)
    assert load.itl_s is None  # nothing was added meanwhile
    assert "at most 5 requests running" in words(screen(record))
    with canned_server() as server:
        _, _, details = run(server.url, "--requests", "1")
    assert details.server_load is None


def test_ids_against_text_tell_a_wrong_text_from_a_wrong_model(run, llama3, loaded_once):
    text = "We read 你好 and wait for more text to come."
    ids = tuple(llama3.encode(text))
    tokens = tuple(llama3.decode([i]) for i in ids)
    options = ("--requests", "1", "--token-ids", "--tokenizer", "llama-3")
    right = Script(tokens=tokens, ids=ids, give_ids=True)
    with canned_server(default=right) as server:
        _, _, details = run(server.url, *options)
    assert (details.ids.requests, details.ids.same) == (1, 1)
    wrong = Script(tokens=(tokens[0], "ed", *tokens[2:]), ids=ids, give_ids=True)
    with canned_server(default=wrong) as server:
        _, record, details = run(server.url, *options)
    assert (details.ids.same, details.ids.at) == (0, 2)
    assert "the model's ids are not to blame" in words(screen(record))
    other = Script(tokens=tokens, ids=(*ids[:-1], 200_000), give_ids=True)
    with canned_server(default=other) as server:
        _, _, details = run(server.url, *options)
    assert details.ids.unknown_ids == 1


def test_a_404_names_the_interface_and_no_more_of_the_address(run):
    error = Script(behaviour="error-json", status=404)
    with canned_server(default=error) as server:
        _, _, details = run(server.url, "--requests", "1")
    assert details.outcomes[0].note.startswith("404 at /v1/completions: ")


def test_answers_that_could_not_be_compared_do_not_count_as_different(run):
    with canned_server(default=Script(behaviour="error-json", status=500)) as server:
        _, record, _ = run(server.url, "--requests", "1", "--api", "chat", extra=("--no-chart",))
    shown = words(screen(record))
    assert "Streamed text: not compared (3 prompts: the stream ended as http-error 500: " in shown
    assert "has the model a chat template?" in shown
    assert "0 of" not in shown


def test_a_key_and_an_address_leave_no_trace(run, monkeypatch, capsys):
    monkeypatch.setenv("PROBE_KEY", "sk-very-secret")
    error = Script(behaviour="error-json", status=401)
    with canned_server(default=error) as server:
        address = server.url.replace("http://", "http://user:pass-word@")
        code, record, _ = run(
            f"{server.url}/v1?token=hidden", "--requests", "1", "--api-key-env", "PROBE_KEY"
        )
        run(address, "--requests", "1")
    assert code == ExitCode.FAILED_CHECK
    assert "Bearer sk-very-secret" in server.authorizations
    assert any((entry or "").startswith("Basic ") for entry in server.authorizations)
    stored = msgspec.json.encode(record).decode() + "".join(capsys.readouterr())
    for secret in ("sk-very-secret", "pass-word", "hidden"):
        assert secret not in stored
    assert probe_details(record).server == server.url


def test_a_command_line_keeps_no_more_of_the_address_than_its_origin():
    server = parse_server("https://user:pw@example.org/secret/v1?key=1", "chat")
    assert server.origin == "https://example.org"
    assert server.completions == "https://example.org/secret/v1/chat/completions?key=1"
    assert server.metrics == "https://example.org/secret/metrics?key=1"
    line = ["detokbench", "probe", "https://user:pw@example.org/secret/v1?key=1", "--api", "chat"]
    cut = command_without_url(line, line[2], server)
    assert cut == ["detokbench", "probe", "https://example.org", "--api", "chat"]


@pytest.mark.parametrize("url", ["http://", "ftp://example.org", "http://h:port", "http://:80"])
def test_what_is_no_address(url):
    with pytest.raises(DetokbenchError) as caught:
        parse_server(url, "chat")
    assert caught.value.exit_code == ExitCode.USAGE


def test_no_server_is_one_line_and_exit_code_5(tmp_path, capsys):
    code = main(["probe", "http://127.0.0.1:9", "--out", str(tmp_path)])
    assert code == ExitCode.BROKEN_SETUP
    printed = capsys.readouterr()
    assert "cannot connect to http://127.0.0.1:9" in printed.err
    assert len(printed.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ((), (), "has no prompt in it"),
        (('{"messages": [{"role": "user", "content": "a"}]}',), (), "ask with --api chat"),
        (('{"text": "a"}',), (), "neither a 'prompt' nor 'messages'"),
        (('{"prompt": ',), (), "is not JSON"),
        (("a",), ("--stop", ""), "--stop: an empty stop string"),
        (("a",), ("--api", "chats"), "--api: unknown 'chats'"),
        (("a",), ("--timeout", "60"), "is not a duration"),
    ],
)
def test_wrong_input_gets_one_line(tmp_path, capsys, lines, options, message):
    path = prompts_file(tmp_path, *lines)
    code = main(["probe", "http://127.0.0.1:9", "--prompts", path, *options])
    assert code == ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_messages_of_a_file_go_out_as_they_are(run, tmp_path):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    path = prompts_file(tmp_path, json.dumps({"messages": messages}), "", "plain")
    with canned_server() as server:
        _, _, details = run(server.url, "--api", "chat", "--prompts", path, "--requests", "2")
    assert server.requests[-2]["messages"] in (messages, [{"role": "user", "content": "plain"}])
    assert {facts.prompt for facts in details.requests} == {"prompts.txt:1", "prompts.txt:3"}
    assert details.hold_back is None


def test_two_records_have_one_shape(run):
    with canned_server() as server:
        _, one, _ = run(server.url, "--requests", "1", extra=("--no-chart",))
    with canned_server(default=Script(behaviour="close-at-once")) as server:
        _, two, _ = run(server.url, "--requests", "1", "--api", "chat", extra=("--no-chart",))
    assert one.details.keys() == two.details.keys()
    assert one.settings.keys() == two.settings.keys()
    assert [row.metric for row in one.rows] == [row.metric for row in two.rows]
    assert probe_figure(one) is not None
    assert probe_figure(two) is None
    for record in (one, two):
        for width in (60, 100, 160):
            assert screen(record, width)
