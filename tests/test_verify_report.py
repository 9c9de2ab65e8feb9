"""How a ``verify`` record is shown: what the screen and the chart say, and that nothing breaks."""

import io
import re
import shlex
import subprocess
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from verify_records import (
    LLAMA,
    PATHS,
    SPM,
    case,
    cells,
    difference,
    from_the_prompt,
    growth,
    look_back,
    lost_end,
    raising,
    seen,
    stopped,
    stream,
    too_many_rows,
    verify_record,
)

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.records.store import encode
from detokbench.records.verify import Cell, verify_details
from detokbench.report.page import NamedRecord, make_page
from detokbench.report.verify_chart import verify_figure
from detokbench.report.verify_command import shell_word
from detokbench.report.verify_order import ordered, outcomes
from detokbench.report.verify_reading import read_verify
from detokbench.report.verify_screen import print_verify
from detokbench.report.verify_text import (
    excerpt,
    filled,
    first_difference,
    id_list,
    piece_list,
    plain,
    quoted,
)
from detokbench.report.verify_verdicts import mark, worst
from detokbench.verify.laws import Law

WIDTHS = (30, 60, 80, 100, 118, 120, 160)
EMPTY = {"cells": [], "differences": [], "cases": [], "growth": [], "paths": [], "required": []}


def screen(record, width=120, **options):
    out = io.StringIO()
    print_verify(record, Console(file=out, width=width), **options)
    return out.getvalue()


def columns(line):
    """Columns of a line on a terminal, counted in another way than the code under test does."""
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Co", "Cs", "Cn"} for c in line), line
    return sum(
        0
        if unicodedata.category(c) in {"Mn", "Me"}
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in line
    )


def block(record, number=1, **options):
    """The lines of one difference."""
    text = screen(record, **options)
    return re.search(rf"^ ?{number}  .*?(?=\n\s*\n)", text, re.MULTILINE | re.DOTALL)[0]


def read_by_bash(command):
    """The arguments of a command line, as a shell takes it that it is pasted into."""
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"],
        capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return printed.stdout.decode().split("\0")[:-1]


def only(*differences, **changes):
    return verify_record(differences=list(differences), **changes)


# --- the whole screen ----------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_console(width):
    text = screen(verify_record(partial=True, failures=["x" * 90]), width)
    assert all(columns(line) <= width for line in text.splitlines())


@pytest.mark.parametrize("width", (80, 100, 120))
def test_every_part_is_on_the_screen(width):
    text = " ".join(screen(verify_record(), width).split())
    for part in (
        "verify · 9 paths, 12 laws · llama-3, tekken, mistral-spm-fast · tokenizers 0.23.3",
        "1,234 streams, 200 of them random, 345,678 steps · 41 s · seed 0 · AMD EPYC, 2 CPUs",
        "Required: byte-table keeps all 12 laws in 1,234 streams.",
        "step 5: expected '🤗 ok', got '���� ok'",
        "2 cases: byte-table right in all; known differences seen: 2 of 3; not foretold: 1.",
        "• byte-table breaks no law in 1,234 streams.",
    ):
        assert part in text


def test_without_a_terminal_there_is_no_colour_and_marks_say_it_all():
    assert "\x1b[" not in screen(verify_record())
    out = io.StringIO()
    print_verify(verify_record(), Console(file=out, width=120, force_terminal=True))
    assert "\x1b[31m✗" in out.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_record_with_nothing_in_it(width):
    text = screen(verify_record(**EMPTY, more_differences=0), width)
    flat = " ".join(text.split())
    assert "No path was judged by any law." in flat
    assert "Differences: none." in flat
    assert "cases:" not in flat
    assert "µs" not in flat
    assert "•" not in flat
    assert all(columns(line) <= width for line in text.splitlines())


@pytest.mark.parametrize("width", (30, 80, 120))
def test_one_path_on_one_vocabulary(width):
    record = verify_record(
        **EMPTY | {"paths": ["slow"], "cells": cells(["slow"], [LLAMA])}, more_differences=0
    )
    text = screen(record, width)
    assert "✗" in text
    assert "vocabularies" not in text
    assert "must be right" not in text
    assert "The one path judged breaks a law" in " ".join(text.split())
    assert all(columns(line) <= width for line in text.splitlines())


def test_what_did_not_finish_is_said_last():
    record = verify_record(partial=True, failures=["tekken: a worker died"])
    text = screen(msgspec.structs.replace(record, warnings=["the fan is loud"]))
    marked = [line for line in text.splitlines() if line.startswith("! ")]
    assert marked[:2] == ["! the fan is loud", "! not finished: tekken: a worker died"]
    assert marked[2].startswith("! partial: ")
    assert text.splitlines()[-1] == marked[2]


# --- the matrix ----------------------------------------------------------------------------


def row_of(text, name):
    line = next(line for line in text.splitlines() if line.startswith(name))
    return " ".join(line.split())


def test_wide_screens_have_a_row_for_each_path():
    text = screen(verify_record(), 118)
    assert row_of(text, "naive") == "naive ✓ ✓ ✗ ✗ ✓ ✓ ✗ ✓ ✓ ✓ – ✓"
    assert row_of(text, "slow ") == "slow ✓ ✗ 1/3 ✗ 1/3 ✗ 1/3 ✗ ✓ ✓ ✓ ✓ ✓ – ✓"
    assert row_of(text, "fast") == "fast ! ✓ ✓ ✓ ✗ ✓ ✓ ✗ 1/2 ✓ ✓ – ✗ linear"
    assert row_of(text, "text-streamer") == "text-streamer ✓ ✗ ✓ ✓ ✓ ✓ ✓ ✓ ✗ 7 ids ✓ ✓ ✗ linear"
    assert row_of(text, "byte-table") == "byte-table *" + 12 * " ✓"


@pytest.mark.parametrize("width", (80, 100))
def test_narrow_screens_have_a_row_for_each_law(width):
    text = screen(verify_record(), width)
    assert row_of(text, "bytes") == "bytes ✗ ✓ ✗ 1/3 ✗ 1/3 ✓ ✗ 1/3 ✗ 1/3 ✗ 1/2 ✓"
    assert row_of(text, "rows") == "rows – ✓ – – – ✗ ✓ ✓ ✓"


def test_very_narrow_screens_have_a_paragraph_for_each_path():
    lines = " ".join(screen(verify_record(), 40).split())
    assert "slow: ✗ 1/3 append-only, ✗ 1/3 bytes, ✗ 1/3 replacement, ✗ complete; ✓ 7; – 1" in lines
    assert "byte-table *: ✓ 12" in lines


def cell(vocab, verdict, figure="", path="slow", law=Law.HOLD):
    return Cell(
        path=path, law=law, vocab=vocab, verdict=verdict, streams=9, broken=1, figure=figure
    )


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ([cell("a", "pass"), cell("b", "n/a")], "✓"),
        ([cell("a", "n/a"), cell("b", "n/a")], "–"),
        ([], "–"),
        ([cell("a", "differs"), cell("b", "differs"), cell("c", "n/a")], "✗"),
        ([cell("a", "differs"), cell("b", "pass"), cell("c", "n/a")], "✗ 1/2"),
        ([cell("a", "differs"), cell("b", "error"), cell("c", "pass")], "! 2/3"),
        ([cell("a", "differs", "9 ids"), cell("b", "differs", "12 ids")], "✗ 12 ids"),
        ([cell("a", "differs", "worse"), cell("b", "differs", "linear")], "✗ worse"),
        ([cell("a", "pass", "3 ids"), cell("b", "pass", "2 ids")], "✓"),
        ([cell("a", "differs", "a figure too long"), cell("b", "pass")], "✗ 1/2"),
    ],
)
def test_the_worst_over_vocabularies_counts(found, shown):
    details = verify_details(verify_record(cells=found))
    assert mark(worst(details, "slow", Law.HOLD), with_figure=True) == shown


def test_laws_are_explained_where_something_breaks_them():
    text = screen(verify_record())
    assert "  bytes        no character that the bytes of the ids spell is lost\n" in text
    assert "Broken by none: ids-a-step, stops.\n" in text
    assert "the right stop, cut at the right character" not in text


def test_reasons_for_what_does_not_apply_are_grouped():
    text = screen(verify_record())
    assert (
        "– rows of naive, slow-uncached, slow, fast: decodes one request at a time\n"
        "– fast, rust-batch on tekken: DecodeStream and decode_batch need a Rust tokenizer\n"
    ) in text


def test_a_required_path_that_fails_is_named_with_its_streams():
    broken = {"byte-table": ((), (Law.BYTES,))}
    text = screen(verify_record(cells=cells(broken=broken), required=["byte-table", "gone"]))
    assert "Required: byte-table FAILED: bytes (mistral-spm-fast: 3 of 400).\n" in text
    assert "Required: gone was not judged.\n" in text
    assert (
        "• The run has failed, since a path that must be right is not: byte-table (bytes)." in text
    )


# --- differences ---------------------------------------------------------------------------


def test_a_difference_says_all_that_is_needed_to_see_it_again():
    assert block(only(look_back())) == (
        " 1  mistral-spm-fast, 1 id a step · case B2 (ai-dynamo/dynamo#12630)\n"
        "    ids    [12014, 28705, 243, 162, 167, 154, 243, 162, 167, 154] | "
        "[243, 162, 167, 154, 3614]\n"
        "    bytes  ' w12014' ' w28705' f0 9f a4 97 f0 9f a4 97 | f0 9f a4 97 ' w3614'\n"
        "    right  '🤗 ok'\n"
        "    slow-uncached, slow, batch-decode, row-decode: append-only, bytes, replacement · "
        "step 5: expected '🤗 ok',\n"
        "      got '���� ok'\n"
        "    $ detokbench trace slow --vocab mistral-spm-fast --prompt-ids "
        "12014,28705,243,162,167,154,243,162,167,154 --ids \\\n"
        "      243,162,167,154,3614"
    )


def test_text_that_never_comes_is_missed_at_the_end():
    shown = block(only(lost_end()))
    assert "ids    no prompt | [9906, 5809]\n" in shown
    assert "complete · at the end: expected 'Hello �', got 'Hello'\n" in shown
    assert "· random stream 12, like case D2 (ai-dynamo/dynamo#12688)\n" in shown


def test_exceptions_and_counters_are_named():
    shown = " ".join(block(only(raising())).split())
    assert "all ids in one step" in shown
    assert (
        "step 1: expected 'Hello\\n�a', got '', raised Exception: Invalid prefix encountered: a b "
        "c d e f, rebuilt_streams 1"
    ) in shown


def test_settings_are_named_where_they_are_not_the_default():
    shown = " ".join(block(only(stopped())).split())
    for words in (
        "llama-3, 3 ids a step, special tokens kept, stop '\\nSTOP', stop \"it's\", stop ids [7],",
        "min_tokens 4, stop kept, not ended · random stream 12",
        "[9906, 1917, 128256, None, 'x', 9223372036854775808]",
        "(no id) (no id) (no id)",
    ):
        assert words in shown
    assert "65,600 rows ·" in block(only(too_many_rows()))


def test_words_about_stops_are_no_texts_in_quotes():
    found = seen(["slow"], [Law.STOPS], 1, "a\n", "a")
    for one in found:
        one.expected_stop, one.got_stop = "stopped by 'b', 1 id kept", "no stop"
    shown = block(only(difference(stream(LLAMA, [], [1]), "a", found)))
    assert "stops · step 1: expected 'a\\n', stopped by 'b', 1 id kept; got 'a', no stop" in shown


def test_what_came_in_the_end_is_said_where_it_is_something_else():
    found = seen(["naive"], [Law.APPEND_ONLY], 1, "", "\ufffd", text="é")
    shown = block(only(difference(stream(LLAMA, [], [1, 2]), "é", found)))
    assert "step 1: expected '', got '�', in the end 'é'" in shown
    found = seen(["naive"], [Law.ONE_SHOT], 3, "é", "é")
    shown = block(only(difference(stream(LLAMA, [], [1, 2]), "é", found)))
    assert "one-shot · at the end: got 'é'" in shown


def test_paths_with_the_same_outcome_share_a_line():
    given_stream = stream(LLAMA, [], [1, 2])
    same = seen(["slow", "fast"], [Law.COMPLETE], 3, "ab", "a")
    others = [
        *seen(["naive"], [Law.COMPLETE], 3, "ab", "a", counted={"resets": 2}),
        *seen(["rust-batch"], [Law.COMPLETE, Law.BYTES], 3, "ab", "a"),
        *seen(["batch-decode"], [Law.COMPLETE], 2, "ab", "a"),
    ]
    found = outcomes(difference(given_stream, "ab", [*same, *others]))
    assert [outcome.paths for outcome in found] == [
        ["slow", "fast"],
        ["naive"],
        ["rust-batch"],
        ["batch-decode"],
    ]


def test_required_paths_come_first_and_then_what_shows_the_most():
    narrow = difference(stream(LLAMA, [], [1]), "a", seen(["byte-table"], [Law.BYTES], 1, "a", "b"))
    repeated = difference(
        stream(LLAMA, [], [2]), "a", seen(["slow", "fast"], [Law.BYTES], 1, "a", "b")
    )
    wide = difference(
        stream(LLAMA, [], [3]), "a", seen(["slow", "fast", "naive"], [Law.BYTES], 1, "a", "b")
    )
    new = difference(stream(LLAMA, [], [4]), "a", seen(["slow"], [Law.WORK], 1, "a", "b"))
    details = verify_details(only(repeated, new, wide, narrow))
    assert [one.input.output for one in ordered(details)] == [[1], [3], [4], [2]]


def test_public_reports_and_small_inputs_come_first_among_equals():
    def one(output, **more):
        return difference(
            stream(LLAMA, [], output), "", seen(["slow"], [Law.BYTES], 1, "a", "b"), **more
        )

    details = verify_details(only(one([1, 2, 3]), one([1, 2]), one([1, 2, 3, 4], like="B2")))
    assert [len(found.input.output) for found in ordered(details)] == [4, 2, 3]


def test_a_screen_has_eight_differences_and_all_of_them_on_demand():
    many = [
        difference(stream(LLAMA, [], [n]), "a", seen(["slow"], [Law.BYTES], 1, "a", "b"))
        for n in range(113)
    ]
    text = screen(only(*many, more_differences=5))
    assert "\n8  llama-3" in text.replace("\n ", "\n")
    assert "\n9  llama-3" not in text.replace("\n ", "\n")
    assert "… and 105 more, in the record (detokbench show RECORD --all).\n" in text
    assert "… and 5 distinct further inputs, found and not kept.\n" in text
    everything = screen(only(*many), limit=None)
    assert "\n  1  llama-3" in everything
    assert "\n113  llama-3" in everything
    assert " more, " not in everything


def test_the_command_can_be_copied_from_a_narrow_screen():
    found = look_back()
    shown = block(only(found), width=60)
    command = shown[shown.index("$ ") + 2 :]
    assert command.count("\n") == 3
    assert read_by_bash(command) == shlex.split(found.command)


@given(st.text())
def test_a_word_for_the_shell_has_nothing_hidden(text):
    word = shell_word(text)
    assert word.isprintable()
    if text.isprintable():
        assert shlex.split(word) == [text]


def test_a_word_for_the_shell_is_what_bash_reads():
    odd = "it's\n\t\\ \x1b\u200d\x9f\U000e0001 🤗"
    assert read_by_bash(shell_word(odd)) == [odd]


def test_an_argument_longer_than_the_screen_can_be_copied_too():
    ids = ",".join(map(str, range(1000, 1100)))
    found = difference(stream(LLAMA, [], [1]), "a", [], command=f"detokbench trace x --ids {ids}")
    text = screen(only(found), width=60)
    command = text[text.index("$ ") + 2 : text.index("1099") + 4]
    assert read_by_bash(command) == shlex.split(found.command)
    assert all(columns(line) <= 60 for line in text.splitlines())


@pytest.mark.parametrize("width", (40, 80, 120))
def test_odd_characters_break_no_line(width):
    odd = "e\u0301\u200d👨‍👩‍👧\u202eab\x00\x1b[31m\ufffd歪☺\ufe0f🇩🇪\u2028" * 9
    given_stream = stream(LLAMA, [1] * 300, [2**63, odd] * 50, stop=[odd[:30]])
    found = seen(["naive"], [Law.BYTES], 2, odd, odd[:40] + "x" + odd, error=f"E: {odd}")
    text = screen(only(difference(given_stream, odd, found, origin=odd[:9])), width)
    assert all(columns(line) <= width for line in text.split("\n"))


# --- cases and growth ----------------------------------------------------------------------


def test_cases_that_went_as_foretold_are_one_line():
    text = screen(verify_record(cases=[case("A1", "fast", "error", True)], required=[]))
    assert "1 case: known differences seen: 1 of 1; not foretold: none.\n" in text


def test_surprises_are_listed_and_those_of_required_paths_first():
    found = [
        case("B2", "naive", "differs", False, got="'a\\n'"),
        case("B2", "slow", "differs", False, got="'a\\n'"),
        case("B5", "fast", "pass", True, report="vllm-project/vllm#1"),
        case("C1", "byte-table", "error", False, got="raised KeyError"),
        case("C2", "byte-table", "pass", False),
    ]
    text = screen(verify_record(cases=found))
    start = text.index("4 cases")
    assert text[start:].splitlines()[:4] == [
        "4 cases: byte-table WRONG in 1 of 2; known differences seen: 0 of 1; not foretold: 3.",
        "  C1 on llama-3: byte-table raises, not named in [case.differ]: raised KeyError",
        "  B2 on llama-3: naive, slow differ, not named in [case.differ]: 'a\\n'",
        "  B5 (vllm-project/vllm#1) on llama-3: fast is right, and named in [case.differ]",
    ]


def test_growth_has_the_worst_stream_of_each_path_that_grows():
    text = screen(verify_record())
    assert re.search(r"text-streamer +one long word +60 → 90,000 +worse +5\.1 → 3,000\n", text)
    assert re.search(r"fast +unknown ids +~ 64 → 4,096 +linear", text)
    assert "stream (llama-3)" in text
    assert "Work a step is flat: slow (6 ids), byte-table (0 ids).\n" in text
    assert "~ modelled" in text


def test_growth_over_different_lengths_names_them():
    found = [
        growth("slow", "linear", [6, 600], (8, 80), lengths=[64, 6400]),
        growth("fast", "linear", [4, 40], (1, 9), lengths=[64, 512], vocab=SPM),
    ]
    text = screen(verify_record(growth=found))
    assert "6 at 64 → 600 at 6,400" in text
    assert "unknown ids, mistral-spm-fast" in text


def test_growth_that_is_flat_everywhere_has_no_table():
    text = screen(verify_record(growth=[growth("naive", "flat", [1, 1], (1, 1))]))
    assert "work that grows" not in text
    assert "Work a step is flat: naive (1 id)." in text


# --- the reading ---------------------------------------------------------------------------


def test_the_reading_names_what_to_conclude():
    assert read_verify(verify_record()) == [
        "byte-table breaks no law in 1,234 streams.",
        "fast raises on some ids, which an engine must catch.",
        "slow-uncached, slow and fast lose the end of some texts: what is held back when the ids "
        "end does not come, or comes as U+FFFD.",
        "naive corrupts text with every vocabulary (bytes, replacement); text-streamer corrupts "
        "text with every vocabulary (append-only).",
        "slow-uncached, slow, batch-decode, row-decode and rust-batch corrupt text with "
        "mistral-spm-fast only (append-only, bytes, replacement).",
        "Not malformed text alone: naive gives some well-formed text otherwise than one decode of "
        "all ids does.",
    ]


def test_what_nearly_all_paths_do_is_said_shortly():
    everywhere = ((Law.COMPLETE,), ())
    some = verify_record(cells=cells(broken=dict.fromkeys(PATHS[:-1], everywhere)))
    assert read_verify(some)[1].startswith("All paths but byte-table lose the end")
    every = verify_record(cells=cells(broken=dict.fromkeys(PATHS, everywhere)), required=[])
    assert read_verify(every)[:2] == [
        "Each of the 9 paths breaks a law.",
        "Every path loses the end of some texts: what is held back when the ids end does not "
        "come, or comes as U+FFFD.",
    ]


# --- text for a screen ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "'a b'"),
        ("\ufffd", "'\ufffd'"),
        ("\n\t\\\x00\u200d\u00a0", "'\\n\\t\\\\\\x00\\u200d\\xa0'"),
        ("it's", '"it\'s"'),
        ("'\"", "'\\'\"'"),
        ("e\u0301", "'e\u0301'"),
        ("\u0301e", "'\\u0301e'"),
        ("\n\u0301", "'\\n\\u0301'"),
        ("☺\ufe0f", "'☺\\ufe0f'"),
        ("\U000e0101", "'\\U000e0101'"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text, shown):
    assert quoted(text) == shown


@given(st.text(max_size=80), st.integers(0, 90), st.integers(12, 60))
def test_an_excerpt_is_a_part_of_the_text_of_bounded_width(text, at, most):
    shown = excerpt(text, at, most)
    assert columns(shown) <= most + 10  # escapes of one character
    if "…" not in text:
        assert shown.startswith("…") or quoted(text).startswith(shown.strip("…")[:-1])
        assert ("…" in shown) == (shown != quoted(text))


def test_an_excerpt_keeps_the_place_in_sight():
    text = "a" * 100 + "X" + "b" * 100
    shown = excerpt(text, 100, 30)
    assert re.fullmatch(r"…'a+Xb+'…", shown)
    assert len(shown) == 30
    assert excerpt(text, 0, 30).startswith("'aaa")
    assert excerpt(text, 201, 30).endswith("bbb'")


@given(st.text("ab"), st.text("ab"))
def test_the_first_difference_of_two_texts(one, other):
    place = first_difference(one, other)
    assert one[:place] == other[:place]
    assert one[place : place + 1] != other[place : place + 1] or one == other


def test_words_are_kept_as_they_are_and_cut():
    assert plain("'a\\n', no stop", 40) == "'a\\n', no stop"
    assert plain("line\nbreak", 40) == "line\\nbreak"
    assert plain("x" * 50, 10) == "x" * 9 + "…"


def test_long_lists_are_cut_in_the_middle():
    assert id_list(range(21))[-2:] == ["19,", "20]"]
    assert " ".join(id_list(range(100))).endswith("15, …80 more…, 96, 97, 98, 99]")
    assert id_list([]) == ["[]"]
    assert piece_list(["b'\\xf0'", "b' ok'", "no id", "__import__('os')"]) == [
        "f0", "' ok'", "(no id)", "(__import__('os'))",
    ]  # fmt: skip


@given(st.lists(st.text("ab🤗", max_size=30)), st.integers(12, 40))
def test_filled_lines_keep_every_fragment_and_the_width(fragments, width):
    text = filled(fragments, width, "first ", "  ")
    assert all(columns(line) <= width for line in text.split("\n"))
    assert re.sub(r"\s", "", text) == "first" + "".join(fragments)


# --- chart, page and command ---------------------------------------------------------------


def drawn(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_chart_has_a_mark_for_every_cell_and_the_figures():
    figure = verify_figure(verify_record())
    marks = drawn(figure)
    assert len([text for text in marks if text in "✓✗!–"]) == 9 * 12 * 3
    assert marks.count("!") == 2
    assert marks.count("linear") == 5
    assert "7 ids" in marks
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][-1] == "byte-table *"
    assert "llama-3, tekken, mistral-spm-fast" in figure.get_supxlabel()
    assert "tokenizers 0.23.3" in figure.get_suptitle()


def test_the_chart_of_one_vocabulary_and_of_none():
    one = verify_record(cells=cells(["slow"], [LLAMA]), paths=["slow"], required=[])
    figure = verify_figure(one)
    assert len(drawn(figure)) == 12
    assert figure.get_supxlabel() == "with llama-3"
    assert verify_figure(verify_record(**EMPTY)) is None


def test_the_page_shows_it_with_the_lines_of_each_difference():
    record = msgspec.structs.replace(verify_record(), vocabulary={"name": "llama-3, tekken"})
    page = make_page([NamedRecord("v.json", record)])
    assert '<p class="lines"><strong> 1  mistral-spm-fast' in page
    assert "<dt>vocabulary</dt><dd>llama-3, tekken</dd>" in page
    assert "<li>byte-table breaks no law in 1,234 streams.</li>" in page


def test_show_has_all_differences_of_verify_and_refuses_it_of_others(tmp_path, capsys):
    many = [from_the_prompt() for _ in range(14)]
    path = tmp_path / "v.json"
    path.write_bytes(encode(only(*many)))
    assert main(["show", str(path)]) == 0
    assert "… and 6 more" in capsys.readouterr().out
    assert main(["show", str(path), "--all"]) == 0
    assert "\n14  llama-3" in capsys.readouterr().out
    path.write_bytes(encode(msgspec.structs.replace(only(), kind="time-step")))
    assert main(["show", str(path), "--all"]) == ExitCode.USAGE
    assert "--all: v.json is a record of time-step, not verify" in capsys.readouterr().err
