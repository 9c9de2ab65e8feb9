"""``verify`` and ``trace`` beside paths of others that do not keep to the protocol."""

import json
import subprocess
import sys

import msgspec
import pytest

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.paths.registry import RegisteredPath
from detokbench.trace import trace_stream
from detokbench.verify.find import Finder
from detokbench.verify.judge import judge
from detokbench.verify.laws import Law
from detokbench.verify.rows import check_neighbours, check_number
from detokbench.verify.stream import Runner, Stream
from detokbench.verify.truth import Truth
from detokbench.verify.work import growth_of
from tests import third_party
from tests.streaming import assert_error, vocabulary

HELLO, WORLD = 9906, 1917


class Panic(BaseException):
    """What a panic in Rust is in Python: no Exception."""


class Silent(Exception):
    def __str__(self):
        raise ValueError("no words")


class Foreign:
    """Sends nothing; tests spoil one of its methods."""

    _opened = 0

    def __init__(self, vocabulary):
        pass

    def open(self, prompts, flags=None):
        first = Foreign._opened
        Foreign._opened += len(prompts)
        return list(range(first, Foreign._opened))

    def step(self, rows, new_ids):
        return ["" for _ in rows]

    def end(self, row):
        return ""


def path_with(**methods):
    return RegisteredPath("foreign", type("Spoilt", (Foreign,), methods))


def _raising(error):
    def method(self, *arguments, **named):
        raise error

    return method


SPOILT = {
    "no text": {"step": lambda self, rows, ids: [None for _ in rows]},
    "bytes": {"step": lambda self, rows, ids: [b"x" for _ in rows]},
    "no list": {"step": lambda self, rows, ids: None},
    "too many": {"step": lambda self, rows, ids: ["", *("" for _ in rows)]},
    "too few": {"step": lambda self, rows, ids: []},
    "no rows": {"open": lambda self, prompts, flags=None: []},
    "no text at the end": {"end": lambda self, row: None},
    "exit": {"step": _raising(SystemExit(0))},
    "panic": {"step": _raising(Panic("in Rust"))},
    "panic at the end": {"end": _raising(Panic("in Rust"))},
    "no words": {"open": _raising(Silent())},
    "endless": {"step": lambda self, rows, ids: self.step(rows, ids)},
}


@pytest.mark.parametrize("methods", SPOILT.values(), ids=SPOILT)
def test_whatever_a_path_does_is_an_error_of_the_path(methods):
    on = vocabulary("llama-3")
    path = path_with(**methods)
    stream = Stream((), (HELLO, WORLD))
    result = judge(Runner(path, on), stream, Truth(stream, on), (1, 2))
    assert result.broken == {Law.NO_ERROR}
    trace = trace_stream(path, on, stream)
    assert trace.error
    assert list(growth_of(path, on)) == []


@pytest.mark.parametrize("methods", SPOILT.values(), ids=SPOILT)
def test_what_a_row_does_alone_is_no_matter_of_its_neighbours(methods):
    on = vocabulary("llama-3")
    path = path_with(**methods)
    found = check_neighbours(path, on, [Stream((), (HELLO,)), Stream((), (WORLD, HELLO))])
    assert (found.judged, found.breaches) == (0, [])
    assert check_number(path, on).judged == 0


def test_a_path_that_raises_beside_other_rows_only_breaks_the_law_of_rows():
    def step(self, rows, new_ids):
        if len(rows) > 1:
            raise RuntimeError("one at a time")
        return ["a" for _ in rows]

    found = check_neighbours(
        path_with(step=step), vocabulary("llama-3"), [Stream((), (HELLO,)), Stream((), (WORLD,))]
    )
    assert found.judged == 6
    assert [breach.expected for breach in found.breaches] == ["a", "a", "a"]
    assert found.breaches[0].error == "RuntimeError: one at a time"


def test_a_row_that_raises_alone_is_left_out_and_the_others_are_judged():
    def step(self, rows, new_ids):
        if [WORLD] in new_ids:
            raise RuntimeError("no world")
        return ["a" if len(rows) == 1 else "b" for _ in rows]

    streams = [Stream((), (HELLO,)), Stream((), (WORLD,)), Stream((), (HELLO, HELLO))]
    found = check_neighbours(path_with(step=step), vocabulary("llama-3"), streams)
    assert found.judged == 6
    assert {breach.stream for breach in found.breaches} == {streams[0], streams[2]}


def test_a_path_that_empties_the_lists_it_is_given_is_traced_with_what_came_in():
    def step(self, rows, new_ids):
        for ids in new_ids:
            ids.clear()
        return ["" for _ in rows]

    trace = trace_stream(path_with(step=step), vocabulary("llama-3"), Stream((), (HELLO, WORLD)))
    assert [step.ids for step in trace.steps] == [(HELLO,), (WORLD,), ()]


def test_a_property_that_fails_counts_nothing():
    def broken(self):
        raise RuntimeError("not yet")

    path = path_with(broken=property(broken), bad_ids=3)
    seen = Runner(path, vocabulary("llama-3")).run(Stream((), (HELLO,)), 1)
    assert (seen.error, seen.counted) == ("", {})


@pytest.mark.parametrize(
    ("why_not", "says"),
    [(lambda vocabulary: True, "why_not gave True"), (_raising(OSError("gone")), "OSError: gone")],
)
def test_a_path_that_cannot_say_whether_it_applies(why_not, says):
    path = path_with(why_not=staticmethod(why_not))
    with pytest.raises(DetokbenchError) as caught:
        path.why_not(vocabulary("llama-3"))
    assert_error(caught, ExitCode.BROKEN_SETUP, "'foreign'", says)


def test_stops_of_a_kind_that_does_not_exist(tmp_path, monkeypatch):
    environment = third_party.install(tmp_path, "odd-stops", "return ['' for _ in rows]")
    module = tmp_path / "odd_stops_module.py"
    module.write_text(f'{module.read_text()}\n    stops = "somehow"\n')
    run = subprocess.run(
        [sys.executable, "-m", "detokbench", "trace", "odd-stops", "--output-ids", "1"],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert run.returncode == ExitCode.BROKEN_SETUP
    assert "stops 'somehow'" in run.stderr and "Traceback" not in run.stderr


def test_what_a_path_prints_is_not_in_the_record(tmp_path):
    code = "print('noise'); return [None if ids == [-1] else '' for ids in new_ids]"
    environment = third_party.install(tmp_path, "loud", code)
    run = subprocess.run(
        [
            sys.executable, "-m", "detokbench", "verify", "loud", "--vocab", "llama-3", "--fuzz",
            "5", "--laws", "bytes", "--jobs", "1", "--json", "--no-chart", "--out", tmp_path,
        ],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert run.returncode == ExitCode.OK, run.stderr
    assert json.loads(run.stdout)["kind"] == "verify"
    assert "noise" in run.stderr


def test_lone_surrogates_are_stored_as_numbers():
    on = vocabulary("llama-3")
    said = RuntimeError("\udcff")
    runners = {
        "sends": Runner(path_with(step=lambda self, rows, ids: ["\udcff" for _ in rows]), on),
        "says": Runner(path_with(step=_raising(said)), on),
    }
    found = Finder(on, runners).describe(Stream((), (HELLO,)), 1, 1, "a test")
    sends, says = found.seen
    assert (sends.got, sends.text, says.error) == ("\\udcff", "\\udcff", "RuntimeError: \\udcff")
    assert msgspec.json.encode(found)
