"""The format of cases; what those of the package show is in test_known_faults.py."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streaming import assert_error

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.paths import Flags
from detokbench.stops.request import StopRequest
from detokbench.workload.case_file import ExpectTable
from detokbench.workload.cases import CaseRow, load_cases
from detokbench.workload.toml_lines import KeyLines

HEAD = '[[case]]\nname = "X"\ntitle = "T"\nvocabulary = "llama-3"\n'
WHOLE = HEAD + "output = [9906, 1917]\n"


@pytest.fixture
def written(tmp_path):
    """Writes a file of cases and returns its path as the user would type it."""

    def write(content: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(content, encoding="utf-8")
        return str(path)

    return write


def spell(text: str) -> list[int]:
    """An encoder that needs no tokenizer."""
    return [ord(char) for char in text]


# Reading a file


def test_what_a_case_leaves_out_has_a_default(written):
    (case,) = load_cases(written(WHOLE))
    assert (case.name, case.title, case.report, case.vocabulary) == ("X", "T", "", "llama-3")
    assert (case.step_sizes, case.differ, case.file_name) == ((), {}, "mine.toml")
    assert case.rows(spell) == [
        CaseRow([], [9906, 1917], Flags(True, True), StopRequest(), "length", None)
    ]


def test_every_key_arrives_where_it_belongs(written):
    (case,) = load_cases(
        written(
            HEAD + 'report = "a/b#1"\nprompt = "ab"\noutput = "cd"\nids_per_step = [1, "all"]\n'
            "skip_special_tokens = false\nspaces_between_special_tokens = false\n"
            'stop = ["x", "y"]\nstop_regex = ["z+"]\nstop_ids = [7]\nmin_tokens = 3\n'
            'keep_stop = true\nend = "open"\n'
            '[case.expect]\ntext = "cd"\ndeltas = ["c", "d"]\nstop = false\nkept_ids = [99]\n'
            '[case.differ]\nslow = "nothing"\nmy-own-path = ""\n'
        )
    )
    (row,) = case.rows(spell)
    assert (row.prompt_ids, row.output_ids) == ([97, 98], [99, 100])
    assert row.flags == Flags(False, False)
    assert row.stops == StopRequest(("x", "y"), ("z+",), frozenset({7}), 3, True)
    assert row.end == "open"
    assert row.expect == ExpectTable(text="cd", deltas=("c", "d"), stop=False, kept_ids=(99,))
    assert case.step_sizes == (1, "all")
    assert (case.report, case.differ) == ("a/b#1", {"slow": "nothing", "my-own-path": ""})


@pytest.mark.parametrize(
    ("ids_per_step", "sizes"), [("3", (3,)), ('"all"', ("all",)), ("[2, 4]", (2, 4))]
)
def test_ids_per_step_is_a_number_a_list_or_all(written, ids_per_step, sizes):
    (case,) = load_cases(written(WHOLE + f"ids_per_step = {ids_per_step}\n"))
    assert case.step_sizes == sizes


def test_the_rows_of_a_case_each_have_their_own_keys(written):
    (case,) = load_cases(
        written(
            HEAD + '[[case.row]]\noutput = "a"\nmin_tokens = 1\n[case.row.expect]\ntext = "A"\n'
            '[[case.row]]\noutput = [5]\nprompt = "b"\n'
        )
    )
    first, second = case.rows(spell)
    assert (first.output_ids, first.stops.min_tokens, first.prompt_ids) == ([97], 1, [])
    assert first.expect is not None
    assert first.expect.text == "A"
    assert (second.output_ids, second.stops.min_tokens, second.prompt_ids) == ([5], 0, [98])
    assert second.expect is None


def test_output_ids_may_be_anything_that_toml_can_write(written):
    odd = "[-1, 4294967296, 9223372036854775807, 9223372036854775808, 1.5, nan, 'x', true]"
    (case,) = load_cases(written(HEAD + f"output = {odd}\n"))
    ids = case.rows(spell)[0].output_ids
    assert ids[:5] == [-1, 2**32, 2**63 - 1, 2**63, 1.5]
    assert ids[5] != ids[5]
    assert (ids[6], ids[7]) == ("x", True)


def test_a_file_may_begin_with_a_byte_order_mark_and_end_lines_as_windows_does(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    (case,) = load_cases(file)
    assert case.rows(spell)[0].output_ids == [9906, 1917]


def test_cases_say_where_they_stand(written):
    cases = load_cases(written(WHOLE + "\n# more\n" + WHOLE.replace('"X"', '"Y"')))
    assert [case.place for case in cases] == [
        "cases mine.toml, line 1: case[0]",
        "cases mine.toml, line 8: case[1]",
    ]


# What is refused, each with its line


@pytest.mark.parametrize(
    ("added", "line", "says"),
    [
        ("outptu = 4\n", 6, "case[0].outptu: there is no such key"),
        ("[case.expect]\ntxt = 'x'\n", 7, "case[0].expect.txt: there is no such key"),
        ("[case.expect]\ntext = 3\n", 7, "case[0].expect.text: expected str, got int"),
        ("expect.text = 3\n", 6, "case[0].expect.text: expected str, got int"),
        ("expect = { stop = 1.5 }\n", 6, "case[0].expect.stop: expected bool | int | str, got f"),
        ("report = 12630\n", 6, "case[0].report: expected str, got int"),
        ("prompt = [1, -1.5]\n", 6, "case[0].prompt[1]: expected int, got float"),
        ("stop = 'END'\n", 6, "case[0].stop: expected list, got str"),
        ("min_tokens = true\n", 6, "case[0].min_tokens: expected int, got bool"),
        ("skip_special_tokens = 1\n", 6, "expected bool, got int"),
        ("end = 'eos'\n", 6, "case[0].end: expected one of length, stop-id, open, got 'eos'"),
        ("differ = ['slow']\n", 6, "case[0].differ: expected table, got list"),
        ("[case.differ]\nslow = 1\n", 6, "case[0].differ: expected str, got int"),
        ("ids_per_step = 1.5\n", 6, "case[0].ids_per_step: expected int | str | list, got float"),
        ("ids_per_step = 0\n", 6, "case[0].ids_per_step: expected 1 or more, got 0"),
        ("ids_per_step = [\n 1,\n -2]\n", 6, "expected 1 or more, got -2"),
        ("ids_per_step = 'each'\n", 6, "expected a number or 'all', got 'each'"),
        ("min_tokens = -1\n", 6, "case[0].min_tokens: expected 0 or more, got -1"),
        ("stop = ['a', '']\n", 6, "case[0].stop: an empty stop string stops at once"),
        ("stop_regex = ['(']\n", 6, "case[0].stop_regex: '(' is not valid"),
        ("[case.expect]\n", 6, "case[0].expect: expected at least one of text, deltas, stop"),
        ("[case.expect]\nstop = 'x'\n", 7, "'x' is not one of the stops of this stream"),
        ("stop_ids = [1]\n[case.expect]\nstop = 2\n", 8, "2 is not one of the stops"),
        ("stop = ['x']\n[case.expect]\nstop = true\n", 8, "or false for none"),
        ("[case.expect]\nkept_ids = [1917]\n", 7, "not the beginning of the output"),
        ("[case.expect]\nkept_ids = [9906, 1917, 1]\n", 7, "not the beginning of the output"),
        ("[case.expect]\nkept_ids = [9906.0]\n", 7, "not the beginning of the output"),
        ("[case.expect]\ndeltas = ['a']\n", 7, "a text for each of the 2 ids, got 1"),
        ("[case.expect]\ndeltas = ['a', '', '', '']\n", 7, "for each of the 2 ids, got 4"),
        ("end = 'open'\n[case.expect]\ndeltas = ['', '', '']\n", 8, "of the 2 ids, got 3"),
        ("[[case.row]]\noutput = [1]\n", 5, "case[0].output: the case has rows"),
        ("stop_ids = [1, 9223372036854775808]\n", 6, "9223372036854775808 is no id to stop at"),
        (WHOLE, 7, "case[1].name: there is a case 'X' before this one"),
        (WHOLE.replace('"X"', '" "'), 7, "case[1].name: expected some text"),
        (WHOLE.replace('"X"', '"Y"').replace("llama-3", "lama-3"), 9, "did you mean 'llama-3'"),
        (HEAD.replace('"X"', '"Y"'), 6, "case[1].output: expected a text or a list of ids"),
        ("[[case]]\nname = 'Y'\n", 6, "case[1].title: the key is missing"),
        ("[[case]]\n  [[case.row]]\n  output = 'x'\n  [[case.row]]\n  stop = 1\n", 10, "row[1].st"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_line(written, added, line, says):
    with pytest.raises(DetokbenchError) as caught:
        load_cases(written(WHOLE + added))
    assert_error(caught, ExitCode.USAGE, f"cases mine.toml, line {line}: ", says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", ["line 1: case: the key is missing"]),
        ("case = []\n", ["line 1: case: expected at least one case"]),
        ("[case]\nname = 'X'\n", ["line 1: case: expected list, got table"]),
        ("x = 1\n\n" + WHOLE, ["line 1: x: there is no such key"]),
        (WHOLE + "stop = ['a'\nmin_tokens = 1\n", ["line 7: not TOML: "]),
        (WHOLE + "stop = ['a', \n\n", ["line 6: not TOML: "]),
        (WHOLE + "\n\nend =", ["line 8: not TOML: "]),
        (WHOLE + 'end = """open\n\n', ["line 6: not TOML: "]),
        (WHOLE + "end = 'open'\nend = 'open'\n", ["line 7: not TOML: "]),
        (HEAD + "output = ''\n", ["line 5: case[0].output: expected a text"]),
        (HEAD + "output = [1, [2]]\n", ["line 5: case[0].output[1]: expected an id", "got list"]),
        (HEAD + "output = [{a = 1}]\n", ["line 5: case[0].output[0]: ", "got table"]),
        (HEAD + "output = [1, 2.0]\nend = 'stop-id'\n", ["line 5: ", "2.0 is no id to stop at"]),
        (HEAD + "output = [1, true]\nend = 'stop-id'\n", ["line 5: ", "True is no id to stop"]),
        (f"x = {'[' * 3000}{']' * 3000}\n", ["too many lists or tables in each other"]),
    ],
)
def test_what_is_no_file_of_cases_is_refused(written, content, says):
    with pytest.raises(DetokbenchError) as caught:
        load_cases(written(content))
    assert_error(caught, ExitCode.USAGE, "mine.toml", *says)


def test_file_that_is_missing_a_folder_or_no_text_is_an_error(tmp_path):
    with pytest.raises(DetokbenchError) as caught:
        load_cases(tmp_path / "none.toml")
    assert_error(caught, ExitCode.USAGE, "there is no case file", "none.toml")
    with pytest.raises(DetokbenchError) as caught:
        load_cases(tmp_path)
    assert_error(caught, ExitCode.BROKEN_SETUP, "cannot read the cases")
    (tmp_path / "latin.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(DetokbenchError) as caught:
        load_cases(tmp_path / "latin.toml")
    assert_error(caught, ExitCode.USAGE, "latin.toml is not UTF-8")


def test_what_looks_like_a_key_inside_a_string_or_a_list_is_none():
    lines = KeyLines(
        'a = """\nb = 1\n[[t]]\n"""\nb = [ # ]\n "\'\'\'",\n]\n'
        "[[t]]\n'c d' = 1 # c = 2\n  [t.u.v]\n  w.x = { y = 1 }\n[[t]]\n[t.u.v]\n"
    )
    assert [lines[path] for path in [("a",), ("b",), ("t", 0), ("t", 0, "c d")]] == [1, 5, 8, 9]
    assert lines[("t", 0, "u", "v", "w", "x", "y")] == 11
    assert (lines[("t", 1)], lines[("t", 1, "u", "v")]) == (12, 13)
    assert lines[("t", 1, "u", "v", "w")] == 13  # it is not there, so what it would lie in


_VALUES = st.one_of(
    st.integers(), st.text(alphabet="a=[]#\"'\n\\", max_size=8), st.lists(st.integers(), max_size=3)
)


@given(st.lists(_VALUES, min_size=1, max_size=8))
def test_the_line_of_a_key_does_not_depend_on_the_values_before_it(values):
    text, first_lines = "", []
    for number, value in enumerate(values):
        first_lines.append(text.count("\n") + 1)
        text += f"k{number} = {_over_several_lines(value)}\n"
    lines = KeyLines(text)
    assert [lines[(f"k{number}",)] for number in range(len(values))] == first_lines


def _over_several_lines(value: Any) -> str:
    if isinstance(value, str):
        return '"""' + value.replace("\\", "\\\\").replace('"', '\\"') + '"""'
    if isinstance(value, list):
        return "[\n" + "".join(f"  {item}, # ]\n" for item in value) + "]"
    return str(value)
