"""``detokbench trace``: what it shows of a stream, and what bad options get."""

import io
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from streaming import assert_error, deltas, one_by_one, vocabulary
from test_reference import ids_of

from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.grammar import parse_id_list
from detokbench.paths import load_path_class
from detokbench.report.trace_cells import excerpt, shown_text
from detokbench.stops.request import StopRequest
from detokbench.trace import Difference, Trace, trace_stream
from detokbench.trace.given import given_case
from detokbench.verify.stream import Stream

PATHS = ("naive", "text-streamer", "slow", "fast", "batch-decode", "row-decode", "byte-table")


def traced(
    path: str, name: str, output: list, prompt: list = (), size: int = 1, **more: object
) -> Trace:
    stream = Stream(tuple(prompt), tuple(output), **more)
    return trace_stream(load_path_class(path), vocabulary(name), stream, size)


def outcomes(trace: Trace) -> list[str]:
    return [step.outcome for step in trace.steps]


def printed(capsys, *arguments: str) -> str:
    assert main(["trace", *arguments]) == 0
    return capsys.readouterr().out


# -- steps


def test_a_genuine_replacement_character_is_held_and_lost(llama3):
    trace = traced("slow", "llama-3", [9906, 15722, 103, 5809])
    assert outcomes(trace) == ["commit", "hold", "commit", "hold", "lost"]
    assert [step.delta for step in trace.steps] == ["Hello", "", "歪", "", ""]
    assert trace.steps[1].pieces == (b"\xe6\xad",)
    assert trace.steps[1].after.held == "\ufffd"
    assert trace.comparison.right == "Hello歪\ufffd"
    assert trace.comparison.difference.label == "4"


def test_the_text_parts_at_the_step_that_sends_the_first_wrong_character():
    trace = traced("fast", "mistral-spm-fast", [22557, 13, 243, 28708])
    assert trace.text == "Hello\na"
    assert trace.comparison.right == "Hello\n\ufffda"
    assert (trace.comparison.difference.label, trace.comparison.difference.position) == ("4", 6)
    assert trace.steps[3].counted == {"rebuilt_streams": 1}
    assert trace.steps[3].before.is_modelled


def test_what_is_sent_before_its_bytes_call_for_it_is_named_though_it_is_right_in_the_end():
    early = traced("naive", "mistral-spm-fast", [22557, 13, 243, 28708])
    assert early.text == early.comparison.right == "Hello\n\ufffda"
    assert early.comparison.difference is None
    assert early.comparison.early == Difference("3", 6)
    later = traced("naive", "llama-3", [9906, 9468, 97])
    assert later.text == f"{later.comparison.right}\ufffd"
    assert later.comparison.early == Difference("2", 5)
    assert later.comparison.difference == Difference("3", 6)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_what_is_sent_in_time_is_not_early(size):
    ids = [9906, 15722, 103, 5809, 9468, 97]
    for path in ("byte-table", "slow", "fast"):
        assert traced(path, "llama-3", ids, size=size).comparison.early is None
    no_stop = StopRequest(strings=("zzz",))
    assert traced("byte-table", "llama-3", ids, stops=no_stop).comparison.early is None


def test_several_ids_a_step_name_the_right_step():
    trace = traced("slow", "llama-3", [9906, 1917, 1917, 5809], size=3)
    assert [len(step.ids) for step in trace.steps] == [3, 1, 0]
    assert trace.comparison.difference.label == "2"
    assert traced("byte-table", "llama-3", [15722], size=3).steps[-1].delta == "\ufffd"


def test_what_a_path_raises_is_the_last_step():
    trace = traced("naive", "llama-3", [9906, -1, 1917])
    assert outcomes(trace) == ["commit", "error"]
    assert trace.error.startswith("OverflowError: ")
    opened = traced("slow", "llama-3", [9906], prompt=[-1])
    assert [(step.label, step.outcome) for step in opened.steps] == [("open", "error")]


def test_a_stream_that_goes_on_has_no_end_and_owes_nothing_that_is_held():
    trace = traced("slow", "llama-3", [9906, 5809], ended=False)
    assert outcomes(trace) == ["commit", "hold"]
    assert trace.comparison.right == "Hello\ufffd"
    assert trace.comparison.difference is None
    assert traced("naive", "llama-3", [15722, 103], ended=False).comparison.difference.label == "1"


def test_stops_hold_back_and_are_named():
    stops = StopRequest(strings=(" jumps!", "own fox"))
    trace = traced("fast", "llama-3", [791, 4062, 14198, 39935, 35308], stops=stops)
    assert outcomes(trace)[-1] == "stop"
    assert trace.text == trace.comparison.right == "The quick br"
    assert trace.finish.matched == "own fox"
    assert [step.stop_held for step in trace.steps] == ["The", " quick", " brown", ""]


def test_ids_wait_in_front_of_a_path_behind_a_scheduler():
    ids = vocabulary("llama-3").encode("int main STOP and more")
    trace = traced("batch-decode", "llama-3", ids, stops=StopRequest(strings=(" STOP and th",)))
    assert outcomes(trace) == ["commit", "commit", "wait", "wait", "commit", "end"]
    assert [len(step.handed) for step in trace.steps] == [1, 1, 0, 0, 3, 0]
    assert trace.steps[3].stop_held == " STOP and"
    assert trace.steps[3].window is None


def test_a_stop_that_special_tokens_hide_is_warned_of():
    (warning,) = traced(
        "fast", "llama-3", [9906], stops=StopRequest(strings=("<|eot_id|>",))
    ).warnings
    assert "special token" in warning


def test_where_no_bytes_are_known_the_trace_still_runs(llama3, monkeypatch):
    from detokbench.vocab import Vocabulary
    from detokbench.vocab.id_bytes import UnsupportedFamilyError

    bare = Vocabulary("bare", llama3.tokenizer, llama3.rust, "a test")
    monkeypatch.setattr(
        "detokbench.vocab.id_bytes.id_bytes", lambda _: (_ for _ in ()).throw(_refused())
    )

    def _refused() -> UnsupportedFamilyError:
        return UnsupportedFamilyError("its decoder is WordPiece")

    trace = trace_stream(load_path_class("fast"), bare, Stream((), (9906,)))
    assert trace.text == "Hello"
    assert trace.comparison == "its decoder is WordPiece"
    assert trace.steps[0].pieces is None


@pytest.mark.parametrize("path", PATHS)
def test_a_trace_gives_what_the_path_gives(llama3, path):
    @settings(max_examples=40)
    @given(ids_of("llama-3"), ids_of("llama-3"))
    def check(prompt, output):
        prompt = [i for i in prompt if isinstance(i, int) and 0 <= i < 128256]
        output = [i for i in output if isinstance(i, int) and 0 <= i < 128256]
        trace = traced(path, "llama-3", output, prompt)
        alone = deltas(load_path_class(path)(llama3), one_by_one(output), prompt)
        assert [step.delta for step in trace.steps] == alone
        assert (trace.comparison.difference is None) == (trace.text == trace.comparison.right)

    check()


@settings(max_examples=60)
@given(ids_of("llama-3"), st.integers(1, 4), st.sampled_from(PATHS))
def test_any_ids_at_all_give_a_trace(output, size, path):
    trace = traced(path, "llama-3", output, size=size)
    assert trace.steps
    assert all(step.error == "" for step in trace.steps[:-1])
    if path == "byte-table":
        assert not trace.error
        assert trace.comparison.difference is None


# -- the screen


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
@pytest.mark.parametrize("path", ["slow", "fast", "batch-decode", "byte-table"])
def test_nothing_is_cut_at_any_width(capsys, monkeypatch, width, path):
    monkeypatch.setenv("COLUMNS", str(width))
    options = ["--ids-per-step", "4", "--stop", "of it now", "--stop", "ab"]
    out = printed(capsys, path, "--output", "Grüße 你好 [b]end[/b] of it", *options)
    table = out[out.index(" step") : out.index("came:")]
    squeezed = "".join(table.split())
    for part in (r"b'Gr'", r"b'of'", "state", "delta", "end"):
        assert part in squeezed
    assert all(cell_len(line) <= width for line in table.splitlines())
    assert "right:  the same" in out


def test_the_screen_says_what_happened(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = printed(
        capsys, "fast", "--vocab", "mistral-spm-fast", "--output-ids", "22557,13,243,28708"
    )
    assert "fast (vLLM FastIncrementalDetokenizer) · mistral-spm-fast · 1 id a step" in out
    assert r"came:   'Hello\na'" in out
    assert r"right:  'Hello\n�a'" in out
    assert r"They differ from step 4 on: 'a' came, '�a' is right." in out
    assert "* DecodeStream hides its state" in out
    assert "stream rebuilt" in out
    assert "prefix" in out


def test_an_error_is_said_and_the_exit_code_is_0(capsys):
    out = printed(capsys, "naive", "--output-ids", "9906,-1,1917")
    assert "The path raised at step 2: OverflowError" in out
    assert "They differ" not in out


def test_what_came_too_early_is_said(capsys):
    arguments = ("naive", "--vocab", "mistral-spm-fast", "--output-ids", "22557,13,243,28708")
    out = printed(capsys, *arguments)
    assert "right:  the same" in out
    assert "Too early: step 3 sent '\ufffd' before the bytes called for it." in out
    facts = json.loads(printed(capsys, *arguments, "--json"))
    assert (facts["differs"], facts["early"]) == (None, {"step": "3", "position": 6})


def test_what_never_came_is_said(capsys):
    out = printed(capsys, "slow", "--output-ids", "9906,5809")
    assert r"'�', complete with step 2, never came." in out
    assert "lost: something was held and never comes" in out


def test_stops_on_the_screen(capsys):
    out = printed(capsys, "fast", "--output-ids", "791,4062,14198,39935", "--stop", "own fox")
    assert "stops over characters, as vLLM: 'own fox'" in out
    assert "stop:   'own fox', 4 ids kept" in out
    out = printed(capsys, "fast", "--output-ids", "9906,13,1917", "--stop-id", "13")
    assert "stop:   id 13, 2 ids kept" in out


def test_json_has_all_of_it(capsys):
    ids = "15722,103,-1,9223372036854775808"
    facts = json.loads(printed(capsys, "fast", "--output-ids", ids, "--json"))
    assert facts["output_ids"] == [15722, 103, -1, 2**63]
    assert facts["text"] == facts["right"] == "歪"
    first, _, third, *_ = facts["steps"]
    assert first["bytes"] == [[0xE6, 0xAD]]
    assert first["after"]["held"] == "\ufffd"
    assert third["bytes"] == [None]
    assert third["outcome"] == "nothing"
    assert third["counted"] == {"bad_ids": 1}
    assert facts["differs"] is None


def test_tokens_in_context(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = printed(capsys, "--tokens", "--output-ids", "15722,103,-1")
    rows = [line.split() for line in out.splitlines() if line.strip().startswith(("15722", "103"))]
    assert rows == [
        ["15722", r"b'\xe6\xad'", r"'�'", "''"],
        ["103", r"b'\xaa'", r"'�'", "'歪'"],
    ]
    assert "OverflowError" in out
    facts = json.loads(
        printed(
            capsys, "fast", "--tokens", "--output-ids", "103,-1", "--json", "--prompt-ids", "15722"
        )
    )
    assert facts["tokens"][0] == {
        "id": 103, "bytes": [0xAA], "alone": "\ufffd", "text": "歪", "error": None,
    }  # fmt: skip
    assert facts["tokens"][1]["bytes"] is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "''"),
        ("a\n\x1b\ufffd", r"'a\n\x1b�'"),
        ("\u0301a", r"'\u0301a'"),
        ("\u200d", r"'\u200d'"),
        ("it's", '"it\'s"'),
    ],
)
def test_text_is_shown_so_that_nothing_in_it_is_left_to_guess(text, shown):
    assert shown_text(text) == shown


@given(st.text(), st.integers(0, 300))
def test_what_is_shown_is_python_for_the_text(text, position):
    assert eval(shown_text(text)) == text
    assert "\n" not in excerpt(text * 20, position)
    assert len(excerpt("x" * 1000, position)) < 200


# -- options


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("9906,-1,1917", [9906, -1, 1917]),
        ("128010*3, 5", [128010] * 3 + [5]),
        ("9223372036854775808,2**63,-2**63*2", [2**63, 2**63, -(2**63), -(2**63)]),
        ("1*0", []),
    ],
)
def test_id_lists(text, ids):
    assert parse_id_list(text) == ids


@pytest.mark.parametrize(
    "text", ["", "1,,2", "x", "1.0", "1e3", "0x10", "1*", "*3", "1*-2", "None"]
)
def test_what_is_no_id_list(text):
    with pytest.raises(DetokbenchError) as caught:
        parse_id_list(text, "--output-ids")
    assert_error(caught, ExitCode.USAGE, "--output-ids", "is not a whole number")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fast"], "give --output, --output-ids or --case"),
        (["--output", "a"], "which path?"),
        (["fats", "--output", "a"], "did you mean 'fast'?"),
        (["fast", "--output", "a", "--output-ids", "1"], "--output and --output-ids exclude"),
        (["fast", "--prompt", "a", "--prompt-ids", "1", "--output", "a"], "--prompt-ids exclude"),
        (["fast", "--output-ids", "1.5"], "'1.5' is not a whole number"),
        (["fast", "--output-ids", "9*999999"], "more than 131,072 ids"),
        (["fast", "--output", "a\udcff"], "--output: the text is not valid UTF-8"),
        (["fast", "--output", "a", "--stop", ""], "--stop: an empty stop string"),
        (["fast", "--output", "a", "--stop", "\udcff"], "--stop: the text is not valid UTF-8"),
        (["fast", "--output", "a", "--keep-stop"], "--keep-stop and --min-tokens need a --stop"),
        (["fast", "--output", "a", "--min-tokens", "2"], "need a --stop"),
        (["fast", "--output", "a", "--ids-per-step", "0"], "--ids-per-step"),
        (["naive", "--output", "a", "--stop", "b"], "no stops belong to naive; paths with stops"),
        (["fast", "--vocab", "tekken", "--output", "a"], "fast does not apply to tekken"),
        (["fast", "--vocab", "llama3", "--output", "a"], "did you mean 'llama-3'"),
        (["--tokens", "--output", "a", "--stop", "b"], "--tokens and --stop exclude"),
        (["--tokens", "--output", "a", "--no-end"], "--tokens and --no-end exclude"),
        (["--tokens", "--output", "a", "--ids-per-step", "2"], "--ids-per-step exclude"),
    ],
)
def test_options_that_cannot_be_right(capsys, arguments, message):
    assert main(["trace", *arguments]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) == 1


def test_a_shipped_case_by_its_name(capsys):
    assert main(["trace", "slow", "--case", "B2"]) == 0
    out = capsys.readouterr().out
    assert "mistral-spm-fast" in out and "'���� ok' came" in out


def test_a_case_is_taken_as_it_is(capsys):
    assert main(["trace", "slow", "--case", "B2", "--output", "x"]) == 2
    assert main(["trace", "slow", "--case", "B22"]) == 2
    assert "B2" in capsys.readouterr().err


def test_a_case_is_named_with_what_it_says_of_the_path(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    out = printed(capsys, "slow", "--case", "B2").splitlines()
    assert out[0].startswith("case B2 (ai-dynamo/dynamo#12630): The look-back into the prompt")
    assert out[1] == "the case says of slow: '���� ok', all with the last id"
    assert not any("known" in line for line in printed(capsys, "fast", "--case", "B2").splitlines())


def test_the_rows_of_a_case_are_taken_one_by_one(capsys):
    """E5: min_tokens from 0 to 6."""
    assert "stop:   '\\n', 2 ids kept" in printed(capsys, "fast", "--case", "E5")
    out = printed(capsys, "fast", "--case", "E5", "--row", "3")
    assert "row 3 of 7" in out and "after 2 ids" in out and "stop:   '\\n', 4 ids kept" in out
    for arguments, says in (
        (["--case", "E5", "--row", "8"], "case E5 has 7 rows, got 8"),
        (["--case", "B2", "--row", "2"], "case B2 has 1 row, got 2"),
        (["--output", "a", "--row", "1"], "--row needs a --case"),
    ):
        assert main(["trace", "fast", *arguments]) == ExitCode.USAGE
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "path", "size"),
    [
        ("A1", "batch-decode", 3),
        ("A1", "fast", 1),
        ("H5", "fast", 3),
        ("open-in-character", "row-decode", 2),
    ],
)
def test_a_case_comes_with_as_many_ids_a_step_as_show_its_fault(name, path, size):
    case = given_case(name, 1)
    assert case.ids_per_step(load_path_class(path)) == size


def test_ids_that_are_no_numbers_are_shown_as_python_writes_them(capsys):
    assert "'1917'" in printed(capsys, "fast", "--case", "C1-text")
    assert "1917.0" in printed(capsys, "fast", "--case", "C1-float")


@pytest.mark.parametrize("width", range(72, 200, 7))
def test_no_character_of_a_delta_is_cut_off(width):
    from rich.console import Console

    from detokbench.report.trace_table import steps_table

    vocab = vocabulary("mistral-spm-fast")
    stream = Stream((), tuple(vocab.encode("👩\u200d👩\u200d👧 👍")))
    traced = trace_stream(load_path_class("batch-decode"), vocab, stream, 4)
    out = io.StringIO()
    Console(file=out, width=width).print(steps_table(traced, width))
    shown = re.sub(r"\s", "", out.getvalue())
    for step in traced.steps:
        assert all(char in shown for char in step.delta if char != "\u200d" and char.strip())
    assert shown.count("\\u200d") >= 2 or width < 100  # a fold may fall inside an escape


def test_what_is_held_back_for_a_long_stop_is_said(capsys):
    arguments = ["--output", "One two three four five six seven eight.", "--stop", "x" * 30]
    assert main(["trace", "fast", *arguments]) == 0
    assert "Held back: first text with step 7, 29 characters at most" in capsys.readouterr().out
    assert main(["trace", "byte-table", *arguments]) == 0
    assert "Held back: first text with step 1, 1 character at most" in capsys.readouterr().out
