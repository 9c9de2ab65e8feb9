"""Hold-back, comparison and counts on stored times and texts: nothing here depends on a clock."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_records import stream

from detokbench.live.canned_script import Script
from detokbench.live.counting_chunks import count_tokens, undo_cumulative
from detokbench.live.itl import mean_itl_s, token_gaps
from detokbench.live.metrics_page import load_point, read_page, server_load
from detokbench.live.openai_stream import Answer, Chunk, read_answer
from detokbench.live.probe_checks import Curve, compare_texts, hold_back
from detokbench.live.probe_judge import judge
from detokbench.live.probe_prompts import Prompt
from detokbench.live.probe_quiet import ask_with_stops
from detokbench.live.sse import Event
from detokbench.records.probe import LoadPoint

TEXT = "one two three four five six"


def curve(hold=0, start_s=0.0, text=TEXT, pace_s=0.01):
    """A character every 10 ms from ``start_s`` on, all but the last ``hold`` of them; then all."""
    end_s = start_s + pace_s * len(text)
    at_s = [start_s + pace_s * number for number in range(hold + 1, len(text) + 1)]
    characters = list(range(1, len(text) - hold + 1))
    if hold:
        at_s, characters = [*at_s, end_s], [*characters, len(text)]
    return Curve(text, at_s, characters, end_s)


def test_a_hold_back_in_characters_and_in_time():
    found = hold_back(["x" * 6], "p", [curve(hold=5)] * 3, [curve()] * 3)
    assert found.characters == len(TEXT)
    assert found.held_s == found.later_s == pytest.approx(0.05)
    assert (found.behind, found.most_behind) == (5, 5)
    assert found.end_later_s == 0
    assert found.noise_s == 0


def test_a_slower_start_is_no_hold_back():
    found = hold_back(["x"], "p", [curve(start_s=3.0)] * 3, [curve()] * 3)
    assert found.later_s == found.end_later_s == pytest.approx(3.0)
    assert found.held_s == pytest.approx(0.0, abs=1e-9)
    assert found.most_behind <= 1


def test_a_text_that_the_stop_cuts_short_is_compared_as_far_as_it_goes():
    found = hold_back(["four"], "p", [curve(hold=3, text="one two three ")], [curve()])
    assert (found.characters, found.end_later_s) == (14, None)
    assert found.held_s == pytest.approx(0.03)
    assert found.noise_s is None


class StoredStreams:
    """A server whose answers are stored bytes and times; it keeps with which stops it was asked."""

    def __init__(self, script, ended="end"):
        self.script = script
        self.ended = ended
        self.asked = []

    async def judged_stream(self, prompt, stop=None):
        self.asked.append(stop)
        return judge(stream(self.script, stop or (), ended=self.ended), None)

    def ask_with_stops(self, *stops):
        prompt = Prompt("p", "Hello")
        return asyncio.run(ask_with_stops(self, prompt, list(stops), lambda *_: None))


def test_what_a_stop_string_holds_back_is_seen():
    """Twelve characters are three of the four-letter tokens, so three times their pace."""
    script = Script(tokens=(" abc",) * 24, pace_s=0.004, hold_for_stops=True)
    server = StoredStreams(script)
    found = server.ask_with_stops("x" * 13)
    assert server.asked == [None, ["x" * 13]] * 3
    assert (found.characters, found.repeats, found.end_later_s) == (96, 3, 0)
    assert (found.behind, found.most_behind) == (12, 12)
    assert found.held_s == found.most_held_s == pytest.approx(0.012)


def test_a_stream_that_breaks_off_tells_no_hold_back():
    server = StoredStreams(Script(done=False), ended="closed")
    assert server.ask_with_stops("x").startswith("no hold-back: a request ended as cut-off")
    assert server.asked == [None, ["x"]]


def test_texts_without_a_common_beginning():
    found = hold_back(["x"], "p", [curve(text="abc")], [curve(text="xyz")])
    assert (found.characters, found.held_s) == (0, None)
    assert found.note


@pytest.mark.parametrize(
    ("streamed", "first", "second", "verdict", "at"),
    [
        ("abc", "abc", "abc", "same", None),
        ("abc", "abd", "abc", "same", None),
        ("abx", "abc", "abc", "differs", 2),
        ("abc", "abcd", "abcd", "differs", 3),
        ("abx", "abc", "aye", "not-repeatable", 1),
        ("", "", "", "same", None),
    ],
)
def test_comparing_texts(streamed, first, second, verdict, at):
    found = compare_texts("p", streamed, first, second)
    assert (found.verdict, found.at) == (verdict, at)


def answer(*texts, **fields):
    return Answer([Chunk(0.1 * n, "content", text, **fields) for n, text in enumerate(texts)])


@given(st.lists(st.text(min_size=1, max_size=3), min_size=4, max_size=9))
def test_cumulative_texts_come_apart(deltas):
    whole = answer(*("".join(deltas[:end]) for end in range(1, len(deltas) + 1)))
    assert undo_cumulative(whole)
    assert [chunk.text for chunk in whole.chunks] == deltas


@pytest.mark.parametrize(
    "texts",
    [["a", "a", "a", "a", "a"], ["a", "b", "ab", "abc"], ["a", "ab", "abc"], ["", "", "", ""]],
)
def test_deltas_that_look_alike_are_no_cumulative_texts(texts):
    plain = answer(*texts)
    assert not undo_cumulative(plain)
    assert [chunk.text for chunk in plain.chunks] == texts


def test_cumulative_ids_are_counted_once():
    chunks = [Chunk(0.1 * n, "content", "w", ids=list(range(n))) for n in range(1, 11)]
    cumulative = Answer(chunks)
    undo_cumulative(cumulative)
    assert count_tokens(cumulative, None).totals == {"ids": 10}


def test_counts_of_the_tokenizer_are_scaled_to_the_server_s_total(llama3):
    """` calls` and `here` come back from their text as three tokens."""
    random = answer(" calls", "here")
    assert count_tokens(random, llama3).totals["tokenizer"] == 3
    random.usage = 2
    counted = count_tokens(random, llama3)
    assert sum(arrival.tokens for arrival in counted.arrivals) == pytest.approx(2)
    assert counted.totals == {"tokenizer": 3, "usage": 2}


@pytest.mark.parametrize("per_chunk", [1, 4, 10])
@pytest.mark.parametrize("how", ["ids", "usage", "usage-total", "tokenizer"])
def test_itl_is_the_same_for_any_number_of_tokens_a_chunk(llama3, per_chunk, how):
    ids = llama3.encode(" one two three four five six seven eight nine ten" * 8)
    chunks = []
    for end in range(per_chunk, len(ids) + 1, per_chunk):
        part = ids[end - per_chunk : end]
        chunk = Chunk(0.005 * end, "content", llama3.decode(part))
        chunk.ids = part if how == "ids" else None
        chunk.usage = end if how == "usage" else None
        chunks.append(chunk)
    stream = Answer(chunks, usage=len(ids) if how == "usage-total" else None)
    counted = count_tokens(stream, llama3 if how == "tokenizer" else None)
    assert counted.how == how
    assert mean_itl_s(token_gaps(counted.arrivals)) == pytest.approx(0.005, rel=0.001)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "not JSON"),
        (b"[1]", "no object"),
        (b'{"choices": [1]}', "no list of objects"),
        (b'{"choices": {"a": 1}}', "no list of objects"),
        (b'{"choices": [{"text": 7}]}', "no string"),
        (b'{"choices": [{"text": "\xff"}]}', "not JSON"),
    ],
)
def test_what_is_no_frame(data, says):
    good = Event(0.0, b'{"choices": [{"text": "a"}]}')
    read = read_answer([good, Event(1.0, data), good])
    assert says in read.bad_frame
    assert len(read.chunks) == 1


@given(st.binary(max_size=60))
def test_no_data_is_too_odd(data):
    read_answer([Event(0.0, data)])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "text", "content", "usage", "completion_tokens", "token_ids",
             "logprobs", "tool_calls", "function", "error", "finish_reason", "tokens"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(JSON, max_size=4))
def test_no_json_is_too_odd(frames):
    import msgspec

    read = read_answer([Event(float(n), msgspec.json.encode(f)) for n, f in enumerate(frames)])
    undo_cumulative(read)
    count_tokens(read, None)


def test_kinds_of_frames():
    frames = [
        b'{"choices": [{"delta": {"role": "assistant", "content": ""}}]}',
        b'{"choices": [{"delta": {"role": "assistant", "content": ""}}]}',
        b'{"choices": [{"delta": {"reasoning_content": "hm"}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "{}"}}]}}]}',
        b'{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}',
        b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}',
        b'{"choices": [], "usage": {"completion_tokens": 3}}',
        b"[DONE]",
        b"not read any more",
    ]
    read = read_answer([Event(0.0, data) for data in frames])
    kinds = ["role", *["content"] * 4, "final", "usage"]
    assert [chunk.kind for chunk in read.chunks] == kinds
    assert [chunk.is_empty for chunk in read.content] == [True, False, False, False]
    assert (read.done, read.usage, read.finish_reason) == (True, 3, "stop")


def test_the_page_of_a_server():
    page = (
        "# HELP vllm:x y\n"
        'vllm:num_requests_running{model_name="a}b c",engine="0"} 2.0\n'
        'vllm:num_requests_running{model_name="a}b c",engine="1"} 1.0 1700000000\n'
        "vllm:generation_tokens_total 1e3\nbroken\nvllm:num_requests_waiting NaN\n"
    )
    assert read_page(page)["vllm:num_requests_running"] == 3.0
    engine, point = load_point(page, 2.0)
    assert (engine, point.running, point.tokens, point.waiting) == ("vllm", 3.0, 1000.0, None)
    assert load_point("process_cpu_seconds_total 1.0\n", 0.0) is None
    later = LoadPoint(at_s=12.0, running=9.0, tokens=3000.0)
    assert server_load(engine, [point, later]).tokens_per_s == 200.0
    restarted = LoadPoint(at_s=12.0, tokens=5.0)
    assert server_load(engine, [point, restarted]).tokens_per_s is None


@given(st.text(max_size=200))
def test_any_page_can_be_read(page):
    load_point(page, 0.0)
