"""How a ``probe`` record is shown, from stored bytes and times."""

import io

import pytest
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
from detokbench.live.sse import MAX_LINE_BYTES
from detokbench.records.probe import DEFINITIONS, probe_details
from detokbench.report.probe_chart import probe_figure
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
    assert "720 chunks in 24 streams: 24 empty (3.3%), 0 with U+FFFD" in shown
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
    assert "client-bound: this process used 90% of a core" in shown


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
