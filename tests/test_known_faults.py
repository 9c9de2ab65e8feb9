"""Every shipped case through every path, by the code of ``verify``: what is right, what differs.

What the cases expect is worked out anew from the bytes, by code that has nothing in common with
the reference of ``verify``: Python's decoder over all bytes so far, and a plain search for stops.
"""

import codecs
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import pytest
from streaming import vocabulary

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.paths import load_path_class, path_names
from detokbench.records.verify import CaseResult
from detokbench.verify.case_results import check_case
from detokbench.verify.judge import judge
from detokbench.verify.laws import Law
from detokbench.verify.stream import Runner, Stream
from detokbench.verify.truth import Truth
from detokbench.vocab import Vocabulary, known_vocabularies
from detokbench.workload.cases import Case, CaseRow, case_names, shipped_cases
from detokbench.workload.scenario import scenario_names

SHIPPED = shipped_cases()
BY_NAME = {"argvalues": SHIPPED, "ids": lambda case: case.name}
BROKEN = {"differs", "error"}
ROWS_OF_CASES_MD = {
    *("A1", "A2", "A3", "A5", "A6", "B2", "B3", "B4", "B5", "C1", "C2", "C3", "D2", "D3"),
    *("E1", "E2", "E3", "E5", "E7", "E8", "E10", "E11", "E12", "F2", "G1", "H5", "J1", "J3"),
}
"""The rows that a stream can express. Tests of their own have the others: B6 (a table refused),
E9 (empty stops), F3 and F4 (the cap and regexes), F5 (what a tail costs), and J as token text."""


@cache
def results(name: str) -> dict[str, CaseResult]:
    """A case's result by path, for the paths that apply."""
    (case,) = (case for case in SHIPPED if case.name == name)
    on = vocabulary(case.vocabulary)
    classes = [load_path_class(path) for path in path_names()]
    return {
        path.name: check_case(case, Runner(path, on), on)
        for path in classes
        if path.why_not(on) is None
    }


def rows_of(case: Case) -> list[CaseRow]:
    return case.rows(vocabulary(case.vocabulary).encode)


def test_shipped_cases_have_names_of_their_own_and_known_vocabularies_and_paths():
    names = [case.name for case in SHIPPED]
    assert case_names() == names
    assert len(set(names)) == len(names) >= 75
    known = {known.name for known in known_vocabularies()}
    for case in SHIPPED:
        assert case.vocabulary in known
        assert set(case.differ) <= set(path_names()) - {"byte-table"}
        assert "#" in case.report or case.report == "found by detokbench"
        for row in rows_of(case):
            assert row.expect is not None
            assert row.expect.text is not None
            assert not row.stops.strings or row.end == "stop-id" or row.expect.stop is not None
    assert not set(names) & set(scenario_names())


def test_every_row_that_a_stream_can_express_is_there():
    assert {case.name.split("-")[0] for case in SHIPPED} >= ROWS_OF_CASES_MD


@pytest.mark.parametrize("case", **BY_NAME)
def test_byte_table_is_right_in_every_case(case):
    result = results(case.name)["byte-table"]
    has_regex = any(row.stops.regexes for row in rows_of(case))
    assert result.verdict == ("n/a" if has_regex else "pass"), result.got


@pytest.mark.parametrize("case", **BY_NAME)
def test_the_paths_said_to_differ_are_those_that_do(case):
    differ = {path: found.got for path, found in results(case.name).items() if broken(found)}
    assert set(differ) == set(case.differ), differ


@pytest.mark.parametrize("case", **BY_NAME)
def test_a_case_says_raises_where_a_path_raises(case):
    for path, found in results(case.name).items():
        if path in case.differ:
            assert (found.verdict == "error") == case.differ[path].startswith("raises "), path
        if found.verdict == "error":
            name = case.differ[path].removeprefix("raises ")
            assert found.got.startswith(f"raised {name}: ")


def broken(result: CaseResult) -> bool:
    return result.verdict in BROKEN


# What the bytes say


class Right(NamedTuple):
    """What a row has to give: its text, what ends it, and the ids that stay."""

    text: str
    stop: str | int | bool
    kept: int


def right_for(row: CaseRow, case: Case) -> Right:
    """The right end of a row, from the table of bytes alone."""
    texts = text_after_each_id(row, case)
    stop_ids = row.stops.stop_ids | ({row.output_ids[-1]} if row.end == "stop-id" else set())
    by_id = [i for i, token in enumerate(row.output_ids) if token in stop_ids]
    last = next((i for i in by_id if i >= row.stops.min_tokens), None)
    # Nothing is asked for here that keeps the text of a stop id, or ends inside a character at it.
    whole = texts[-1] if last is None else texts[last]
    first = len(texts[min(row.stops.min_tokens, len(texts) - 1)]) + 1
    for end in range(first, len(whole) + 1):
        for stop in row.stops.strings:
            if whole[:end].endswith(stop):
                text = whole[:end] if row.stops.keep_stop else whole[: end - len(stop)]
                ids = (i for i, so_far in enumerate(texts) if len(so_far) >= end)
                return Right(text, stop, min(next(ids), len(row.output_ids)))
    if last is not None:
        return Right(whole, row.output_ids[last], last + 1)
    return Right(whole, False, len(row.output_ids))


def text_after_each_id(row: CaseRow, case: Case) -> list[str]:
    """What is certain after none, one, two … of the output's ids, then all that is due."""
    data = list(bytes_after_each_id(row, case))
    before, *texts = [decoded(so_far, final=False) for so_far in data]
    due = decoded(data[-1], final=row.end != "open")
    return ["", *(text[len(before) :] for text in (*texts, due))]


def decoded(data: bytes, final: bool) -> str:
    """The text of bytes that end here, or go on."""
    return codecs.utf_8_decode(data, "replace", final)[0]


def bytes_after_each_id(row: CaseRow, case: Case) -> Iterator[bytes]:
    """The bytes of the prompt, then with each id of the output."""
    table = vocabulary(case.vocabulary).id_bytes
    skipped = table.special_ids if row.flags.skip_special_tokens else frozenset[int]()

    def piece(token: Any) -> bytes:
        is_id = type(token) is int and 0 <= token < len(table.pieces) and token not in skipped
        return table.pieces[token] or b"" if is_id else b""

    output = [piece(token) for token in row.output_ids]
    data = b"".join(map(piece, row.prompt_ids))
    if table.strips_leading_space and not data:
        first = next((i for i, more in enumerate(output) if more), 0)
        output[first] = output[first].removeprefix(b" ")
    return accumulate(output, initial=data)


@pytest.mark.parametrize("case", **BY_NAME)
def test_what_a_case_expects_is_what_its_bytes_say(case):
    for row in rows_of(case):
        if row.stops.regexes:
            continue
        expect, right = row.expect, right_for(row, case)
        assert expect.text == right.text
        if expect.stop is not None:
            assert expect.stop == right.stop
        if expect.kept_ids is not None:
            assert list(expect.kept_ids) == row.output_ids[: right.kept]
        if expect.deltas is not None:
            assert "".join(expect.deltas) == right.text


# Rows that need another tokenizer than those of the package, or no stream at all


@pytest.fixture(scope="module")
def cleaning(llama3):
    """B5: Llama-3 with the clean-up of spaces that transformers does by request only since 5.7."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=llama3.rust,
        clean_up_tokenization_spaces=True,
        clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output=True,
    )
    return Vocabulary("cleaning", tokenizer, llama3.rust, "a test")


@pytest.mark.parametrize(
    ("output", "right", "by_tokenizer", "sent"),
    [
        ([1232, 364, 1874], "': 'search", "':'search", ["':", " '", "earch"]),
        ([2564], " ...", "...", ["..."]),
        ([9336, 662, 1541], "well . don", "well. don", ["well", ".", " don"]),
    ],
)
def test_b5_clean_up_changes_text_and_the_bytes_stay_the_oracle(
    cleaning, output, right, by_tokenizer, sent
):
    """SGLang's windows are cleaned each for itself: that loses characters which belong to words."""
    stream = Stream((), tuple(output))
    truth = Truth(stream, cleaning)
    assert (truth.text, truth.one_shot) == (right, right)
    assert cleaning.decode(output) == by_tokenizer
    for path in ("slow", "fast", "rust-batch", "byte-table"):
        assert not judge(Runner(load_path_class(path), cleaning), stream, truth, (1,)).broken
    for path in ("batch-decode", "row-decode"):
        found = judge(Runner(load_path_class(path), cleaning), stream, truth, (1,))
        assert found.observations[1].deltas == sent
        assert {Law.BYTES, Law.ONE_SHOT} <= found.broken


@pytest.mark.parametrize("path", path_names())
def test_c1_a_truth_value_is_the_number_that_python_takes_it_for(llama3, path):
    """DecodeStream takes True for id 1, and so does every other path, ours included."""
    seen = Runner(load_path_class(path), llama3).run(Stream((), (9906, True, 1917)), 1)
    assert seen.text == 'Hello" world'


def test_c2_tekken_says_nothing_of_a_negative_id(tekken):
    assert tekken.decode([-1]) == ""
    with pytest.raises(KeyError):
        tekken.decode([tekken.size])
    assert tekken.id_bytes.join([22177]) == b"Hello"


def test_a2_tekkens_way_back_from_text_to_id_is_none(tekken):
    """The text of the last two ids is that of 606; only the bytes tell them apart."""
    texts = Counter(tekken.tokenizer.inner.id_to_piece(i) for i in range(tekken.size))
    assert (max(texts.values()), sum(count > 1 for count in texts.values())) == (606, 31)
    table = tekken.id_bytes
    assert len({table.pieces[i] for i in range(tekken.size) if i not in table.special_ids}) == (
        tekken.size - len(table.special_ids)
    )


@pytest.mark.parametrize(
    "command",
    [
        ["trace", "fast", "--output", "a"],
        ["tail-str"],
        ["sweep"],
        ["audit", "llama-3"],
    ],
    ids=lambda command: command[0],
)
def test_e9_every_command_refuses_an_empty_stop(capsys, command):
    assert main([*command, "--stop", "x", "--stop", ""]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert "--stop: an empty stop string" in shown.err
