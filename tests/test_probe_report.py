"""How a ``probe`` record is shown, from stored bytes and times."""

import io
import re

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from probe_records import TEXT, asked, probe_record, refused, stream
from rich.console import Console

from detokbench.errors import ExitCode
from detokbench.live.canned_script import Script
from detokbench.live.probe_dialect import Dialect
from detokbench.live.probe_fetch import stream_limit_bytes
from detokbench.live.probe_judge import judge
from detokbench.live.probe_load import Load
from detokbench.live.probe_record import record_of
from detokbench.live.probe_run import Collected
from detokbench.live.probe_url import interface_path, parse_server
from detokbench.live.sse import MAX_LINE_BYTES
from detokbench.records.probe import DEFINITIONS, probe_details
from detokbench.report.probe_chart import probe_figure
from detokbench.report.probe_reading import read_probe
from detokbench.report.probe_screen import print_probe


def screen(record, width=120):
    out = io.StringIO()
    print_probe(record, Console(file=out, width=width))
    return out.getvalue()


def words(text):
    return " ".join(text.split())


def test_figures_of_streams_whose_times_are_known():
    details = probe_details(probe_record())
    assert details.itl.mean_s == pytest.approx(0.005)
    assert details.chunk_gap.mean_s == pytest.approx(0.010)
    assert details.filled_gap.mean_s == pytest.approx(0.010)  # an empty chunk has tokens
    assert details.ttft.mean_s == pytest.approx(0.05)
    assert details.ttft.samples == 24
    assert details.ttft.p90_s is not None and details.ttft.p99_s is None
    assert details.itl.p99_s == pytest.approx(0.005)
    assert details.hold_back.held_s == pytest.approx(0.02)  # 29 characters, 7 a token
    assert details.server_load.tokens_per_s == 250.0
    assert all(figure.points for figure in (details.ttft, details.chunk_gap, details.itl))
    assert len(details.itl.points) <= 400


def test_the_screen_defines_what_it_shows():
    shown = words(screen(probe_record()))
    for name, says in DEFINITIONS.items():
        assert f"{name}: {says}." in shown
    assert "ok 24 a whole stream, ended by [DONE]" in shown
    assert "http-error 1 another status than 200 (500: out of [b]memory[/b])" in shown
    assert "ITL per token 5.00 5.00 5.00 5.00 5.00 696" in shown
    assert "720 chunks in 24 streams: 24 empty (3.3 %), 0 with U+FFFD" in shown
    assert "1,440 tokens, 2.07 for each chunk with text" in shown
    assert "(vllm): at most 4 requests running, 1 before this began, 250 tokens/s." in shown
    assert "text is held back 20 ms, 29 characters" in shown
    assert "a prompt: streamed text differs from character 5: 'one two' streamed, " in shown
    assert "The server refuses the fields seed." in shown


@pytest.mark.parametrize("width", [30, 60, 80, 100, 160])
def test_the_screen_fits_any_terminal(width):
    assert all(len(line) <= width for line in screen(probe_record(), width).splitlines())


def test_with_a_total_only_there_is_a_mean_and_no_percentile():
    script = Script(tokens=TEXT, pace_s=0.005, usage="final", per_chunk=4)
    details = probe_details(probe_record(script))
    assert details.counted_by == "usage-total"
    assert details.itl.mean_s == pytest.approx(0.005, rel=0.01)
    assert (details.itl.p50_s, details.itl.points) == (None, [])
    assert probe_figure(probe_record(script)) is not None


def test_a_record_of_failures_only():
    load = Load(lambda raw: judge(raw, None))
    load.add(refused(b"<html>"))
    load.finish(cpu_s=0.9, wall_s=1.0)
    collected = Collected(Dialect("completions", None, 0, False, False), load)
    outcome = record_of(asked(), collected, "2026-01-02T03:04:05Z", ["detokbench", "probe"])
    assert outcome.exit_code() == ExitCode.FAILED_CHECK
    assert probe_figure(outcome.record) is None
    shown = words(screen(outcome.record))
    assert "No stream came whole: nothing was measured." in shown
    assert "client-bound: this process used 90 % of a core" in shown


def test_an_interrupted_run_is_kept():
    load = Load(lambda raw: judge(raw, None))
    load.add(stream(Script(usage="none")))
    load.finish(cpu_s=0.1, wall_s=1.0)
    collected = Collected(Dialect("completions", None, 0, False, False), load)
    collected.error = KeyboardInterrupt()
    outcome = record_of(asked(), collected, "2026-01-02T03:04:05Z", ["detokbench", "probe"])
    assert outcome.exit_code() == ExitCode.INTERRUPTED
    assert outcome.record.partial
    assert "partial: the run was interrupted" in screen(outcome.record)


@pytest.mark.parametrize("cut", range(0, 700, 37))
def test_a_stream_closed_anywhere_is_cut_off_or_without_done(cut):
    raw = stream(Script(tokens=("a", "b", "c"), usage="none"))
    whole = b"".join(data for _, data in raw.reads)
    raw.reads, raw.ended = [(100.0, whole[:cut])], "closed"
    judged = judge(raw, None)
    assert judged.outcome == ("ok" if cut >= len(whole) else "cut-off")


def test_what_streams_may_take_is_bounded_whatever_is_asked_for():
    assert stream_limit_bytes(1, 64) > MAX_LINE_BYTES
    assert stream_limit_bytes(1, 1 << 24) == 64 << 20
    assert 1024 * stream_limit_bytes(1024, 1 << 24) <= 1 << 30


def test_a_name_of_a_secret_in_a_message_is_blotted_out():
    judged = judge(refused(b'{"detail": "wrong key sk-1234"}'), None, ("sk-1234",))
    assert judged.note == "500: wrong key ***"


def note(body, *secrets, **fields):
    raw = refused(body)
    for name, value in fields.items():
        setattr(raw, name, value)
    return judge(raw, None, secrets).note


def test_a_body_that_is_no_json_is_told_by_its_first_line():
    plain = {"content_type": "text/plain"}
    assert note(b"\n  Bad gateway\nmore", **plain) == "500: Bad gateway (text/plain, 19 bytes)"
    assert note(b"<h1>502 <b>Bad</b></h1>\n<p>x", content_type="text/html").startswith("500: 502 (")
    assert note(b"\x1b[31mred\x00\xff", **plain).startswith("500: \\x1b[31mred\\x00\ufffd (")
    assert note(b"", content_type="") == "500: no content type, 0 bytes"
    shown = note(b"word " * 1000, **plain).removesuffix(" (text/plain, 5,000 bytes)")
    assert len(shown) == len("500: ") + 120
    assert shown.endswith("…")


@given(
    before=st.text(max_size=150),
    after=st.text(max_size=20),
    key=st.text('abcXYZ0189-_.&<"%é', min_size=8, max_size=40),
    as_json=st.booleans(),
    status=st.sampled_from([401, 404, 500]),
)
def test_no_part_of_a_key_that_the_server_repeats_is_shown(before, after, key, as_json, status):
    assume(key[:6] not in before and "*" not in key)
    said = f"{before}{key}{after}"
    body = msgspec.json.encode({"error": said}) if as_json else said.encode()
    assert key[:6] not in note(body, key, status=status, content_type="text/plain")


@pytest.mark.parametrize(
    "said",
    ["Authorization: sk-12", "got 'authorization': 'Bearer sk-12'", "bad BEARER\tsk-12", "bearer"],
)
def test_a_header_that_the_server_repeats_is_not_shown(said):
    for body in (said.encode(), msgspec.json.encode({"message": f"no, {said}"})):
        shown = note(body, content_type="text/plain")
        assert "***" in shown
        assert not re.search("authorization|bearer|sk-12", shown, re.IGNORECASE)


def test_a_404_names_what_was_asked_for_and_a_chat_s_500_the_template():
    body = b'{"error": "Not Found"}'
    assert note(body, status=404, path="/v1/completions") == "404 at /v1/completions: Not Found"
    chat = {"path": "/v1/chat/completions"}
    assert note(body, **chat) == "500: Not Found; has the model a chat template?"
    assert "template" not in note(body, status=400, **chat) + note(body, path="/v1/completions")


@pytest.mark.parametrize(
    ("url", "api", "path"),
    [
        ("http://h:1", "completions", "/v1/completions"),
        ("http://h:1/v2/?key=1", "chat", "/v2/chat/completions"),
        ("https://h/secret/v1", "completions", "…/v1/completions"),
    ],
)
def test_the_path_that_is_named_has_no_secret_in_it(url, api, path):
    assert interface_path(parse_server(url, api).completions) == path


def details_with(**fields):
    record = probe_record()
    record.details |= fields
    return record


def hold(held_ms, noise_ms, end_later_ms=0.0):
    return {
        "stop": ["xy"], "prompt": "p", "repeats": 3, "characters": 375,
        "later_s": held_ms / 1e3, "end_later_s": end_later_ms / 1e3, "held_s": held_ms / 1e3,
        "most_held_s": held_ms / 1e3, "behind": 1.0, "most_behind": 1, "noise_s": noise_ms / 1e3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("held_ms", "noise_ms", "says"),
    [
        (700, 310, "text is held back 700 ms"),
        (600, 310, "inconclusive: runs without it differ by 310 ms anyway, a hold-back below 620 "
         "ms cannot be seen (over 375 characters, 3 runs each)"),
        (3, 2.6, "inconclusive: "),  # two thirds of a chunk's gap of 10 ms would have gone unseen
        (3, 2.4, "no hold-back; one beyond 4.8 ms would be seen"),
    ],
)  # fmt: skip
def test_a_hold_back_is_none_only_where_one_would_have_been_seen(held_ms, noise_ms, says):
    shown = words(screen(details_with(hold_back=hold(held_ms, noise_ms))))
    assert f"Stop 'xy': {says}" in shown
    assert "With the stop string" not in shown


def test_a_stream_that_was_slower_is_named():
    shown = words(screen(details_with(hold_back=hold(1, 310, end_later_ms=1100))))
    assert "With the stop string the same text ended 1.1 s later than without it" in shown


def test_prompts_that_were_not_compared_are_apart_from_those_that_were():
    entries = [
        {"prompt": "a", "verdict": "same"},
        {"prompt": "b", "verdict": "failed", "note": "timed out"},
        {"prompt": "c", "verdict": "failed", "note": "timed out"},
        {"prompt": "d", "verdict": "not-repeatable", "note": "they differ"},
    ]
    shown = words(screen(details_with(comparisons=entries, not_compared=2)))
    assert (
        "Streamed text: equals the unstreamed answer in 1 of 1 prompt; not compared (2 prompts: "
        "timed out); not compared (1 prompt: the server does not repeat itself; they differ); 2 "
        "more were not asked."
    ) in shown


@pytest.mark.parametrize(
    ("totals", "asks"),
    [
        ({"usage": 16, "tokenizer": 34}, "; is --tokenizer the model's? (34 against usage 16)."),
        ({"usage": 16, "tokenizer": 17}, "tokenizer 17."),
        ({"usage": 16, "ids": 40}, "ids 40."),
    ],
)
def test_a_tokenizer_that_counts_far_off_is_asked_about(totals, asks):
    record = probe_record()
    record.details["requests"][3]["totals"] = totals
    line = next(s for s in read_probe(record) if s.startswith("Counts disagree, as for a prompt"))
    assert line.endswith(asks)


@pytest.mark.parametrize(
    ("tokens", "how", "warned"),
    [(64, "usage", False), (65, "usage", True), (70, "tokenizer", False), (71, "tokenizer", True)],
)
def test_more_tokens_than_asked_for_are_a_warning(tokens, how, warned):
    record = probe_record()
    record.details["requests"][3] |= {"tokens": tokens, "counted_by": how}
    shown = words(screen(record))
    assert ("! 1 of 25 streams had more than the 64 tokens asked for, up to" in shown) == warned
    assert "up to 64 tokens asked" in shown


@pytest.mark.parametrize(("usage", "note"), [("final", ", mean 5 ms; more"), ("none", ": unknown")])
def test_the_chart_says_where_itl_has_no_curve_and_the_screen_what_it_needs(usage, note):
    record = probe_record(Script(tokens=TEXT, pace_s=0.005, first_s=0.05, usage=usage, per_chunk=4))
    labels = probe_figure(record).axes[0].get_legend_handles_labels()[1]
    assert any(label.startswith(f"ITL per token{note}") for label in labels)
    assert "For percentiles of ITL give --tokenizer or --logprobs." in words(screen(record))
    refused = details_with(counted_by="none", fields_refused=["logprobs"])
    assert "For percentiles of ITL give --tokenizer." in words(screen(refused))
    assert "For percentiles" not in words(screen(probe_record()))


def test_a_chart_over_decades_has_plain_numbers_at_1_2_and_5():
    record = probe_record()
    for name in ("chunk_gap", "filled_gap", "itl"):
        record.details[name]["points"] = [0.003, 0.01, 0.04]
    axes = probe_figure(record).axes[0]
    axes.figure.canvas.draw()
    shown = [text.get_text() for text in axes.get_xticklabels() if text.get_text()]
    low, high = axes.get_xlim()
    assert [n for n in shown if low <= float(n) <= high] == ["5", "10", "20"]
    assert not any(text.get_text() for text in axes.get_xticklabels(minor=True))
    widths = [line.get_linewidth() for line in axes.get_lines()]
    assert widths == sorted(widths, reverse=True) and len(set(widths)) == 3
    assert axes.get_legend().get_window_extent().y1 < axes.get_window_extent().y0
