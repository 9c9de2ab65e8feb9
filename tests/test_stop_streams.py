"""Stops around paths: the public cases D3, E and F by their ids, and laws against plain models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pytest
import streaming
from hypothesis import given, settings
from hypothesis import strategies as st

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.paths import Flags
from detokbench.paths.printable import printable_prefix
from detokbench.paths.row import PathRow
from detokbench.stops import (
    CharacterStops,
    MatcherStops,
    StopFinish,
    StopRequest,
    StopStream,
    StopStyle,
    TokenStops,
    open_stop_stream,
)
from detokbench.stops.hold_metrics import HoldMetrics, hold_metrics
from detokbench.stops.validation import (
    refuse_empty_stop,
    refuse_stops_without_text,
    stop_warnings,
)
from detokbench.vocab import Vocabulary

STYLES: dict[str, StopStyle] = {
    "fast": "characters",
    "slow": "characters",
    "byte-table": "matcher",
    "batch-decode": "tokens",
}
OVER_TEXT = ["fast", "slow", "byte-table"]
SIZES = (1, 2, 3, 4, 7, 99)


@dataclass
class Streamed:
    """What one stream gave."""

    deltas: list[str]
    finish: StopFinish | None
    stream: StopStream = field(repr=False)

    @property
    def text(self) -> str:
        return "".join(self.deltas)


def run(stream: StopStream, ids: Sequence[int], size: int = 1) -> Streamed:
    """Step through the ids, those after a stop too, and end."""
    deltas = [stream.step(list(ids[at : at + size])) for at in range(0, len(ids), size)]
    deltas.append(stream.end())
    assert stream.held == ""
    return Streamed(deltas, stream.finish, stream)


def on(
    path: str,
    vocabulary: Vocabulary,
    ids: Sequence[int],
    *stops: str,
    size: int = 1,
    skip: bool = True,
    regexes: tuple[str, ...] = (),
    stop_ids: Sequence[int] = (),
    min_tokens: int = 0,
    keep_stop: bool = False,
) -> Streamed:
    """One stream of a path with its own stops."""
    row = PathRow(streaming.build(path, vocabulary), [], Flags(skip_special_tokens=skip))
    request = StopRequest(stops, regexes, frozenset(stop_ids), min_tokens, keep_stop)
    stream = open_stop_stream(
        STYLES[path], request, row, vocabulary.encode, lambda i: vocabulary.decode(i, False)
    )
    return run(stream, ids, size)


# The cases.


@pytest.mark.parametrize("path", STYLES)
def test_d3_held_text_goes_out_at_the_end(llama3: Vocabulary, path: str) -> None:
    ids = llama3.encode("UNO DUE TRE")
    assert on(path, llama3, ids, "TRE\nAAAAAAAA").text == "UNO DUE TRE"
    streamed = on(path, llama3, llama3.encode("hello <"), "<think>")
    assert (streamed.text, streamed.finish) == ("hello <", None)


@pytest.mark.parametrize("path", STYLES)
def test_e1_a_stop_inside_a_token(llama3: Vocabulary, path: str) -> None:
    streamed = on(path, llama3, [75545], "DE")
    assert streamed.text == "ABC"
    assert streamed.finish == StopFinish("DE", 1, 3, 5)


@pytest.mark.parametrize("path", STYLES)
@pytest.mark.parametrize("size", SIZES)
def test_e2_no_beginning_of_the_stop_leaks(llama3: Vocabulary, path: str, size: int) -> None:
    streamed = on(path, llama3, [791, 4062, 14198, 39935, 35308], "own fox", size=size)
    assert streamed.text == "The quick br"
    assert streamed.finish == StopFinish("own fox", 4, 12, 19)


def test_e2_the_matcher_holds_what_may_begin_the_stop_and_no_more(llama3: Vocabulary) -> None:
    streamed = on("byte-table", llama3, [791, 4062, 14198, 39935, 35308], "own fox")
    assert streamed.deltas == ["The", " quick", " br", "", "", ""]


@pytest.mark.parametrize("path", OVER_TEXT)
@pytest.mark.parametrize("size", SIZES)
def test_e3_the_list_does_not_decide(llama3: Vocabulary, path: str, size: int) -> None:
    ids = llama3.encode("over there now")
    for stops in (["re", "he"], ["he", "re"]):
        streamed = on(path, llama3, ids, *stops, size=size)
        assert streamed.text == "over t"
        assert streamed.finish == StopFinish("he", 2, 6, 8)
    streamed = on(path, llama3, ids, "there now", "there", size=size)
    assert streamed.finish == StopFinish("there", 2, 5, 10)


def test_e3_in_sglang_the_list_decides(llama3: Vocabulary) -> None:
    """Right is "over t": the scheduler asks stop by stop, and takes the first in its window."""
    ids = llama3.encode("over there now")
    assert on("batch-decode", llama3, ids, "re", "he").text == "over the"
    assert on("batch-decode", llama3, ids, "he", "re").text == "over t"
    finishes = [
        on("batch-decode", llama3, ids, "there now", "there", size=size).finish for size in (1, 9)
    ]
    assert finishes == [StopFinish("there", 2, 5, 10), StopFinish("there now", 3, 5, 14)]


E5_IDS = [606, 198, 20375, 198, 28956, 198, 35124]
E5_TEXTS = [("one", 2)] * 2 + [("one\ntwo", 4)] * 2 + [("one\ntwo\nthree", 6)] * 2


@pytest.mark.parametrize("path", OVER_TEXT)
@pytest.mark.parametrize("size", SIZES)
def test_e5_a_match_must_end_after_the_first_min_tokens(
    llama3: Vocabulary, path: str, size: int
) -> None:
    for least, (text, kept) in enumerate(E5_TEXTS):
        streamed = on(path, llama3, E5_IDS, "\n", size=size, min_tokens=least)
        assert streamed.text == text
        assert streamed.finish == StopFinish("\n", kept, len(text), len(text) + 1)
    streamed = on(path, llama3, E5_IDS, "\n", size=size, min_tokens=6)
    assert (streamed.text, streamed.finish) == ("one\ntwo\nthree\nfour", None)


def test_e5_sglang_has_no_least_length_for_stop_strings(llama3: Vocabulary) -> None:
    """Right is "one\\ntwo\\nthree": ``min_new_tokens`` only keeps stop ids from being drawn."""
    assert on("batch-decode", llama3, E5_IDS, "\n", min_tokens=5).text == "one"


@pytest.mark.parametrize("path", STYLES)
@pytest.mark.parametrize("size", SIZES)
def test_e7_ids_are_kept_through_the_stop(llama3: Vocabulary, path: str, size: int) -> None:
    ids = llama3.encode("ok ha ha ha and then more")
    assert ids[:4] == [564, 6520, 6520, 6520]
    streamed = on(path, llama3, ids, " ha ha ha", size=size)
    assert streamed.text == "ok"
    assert streamed.finish == StopFinish(" ha ha ha", 4, 2, 11)


def test_e8_a_special_token_as_a_stop_string(llama3: Vocabulary) -> None:
    """The report's id 128010; its name differs between releases of the vocabulary."""
    ids = [*llama3.encode("Bye"), 128010, *llama3.encode(" extra")]
    stop = llama3.decode([128010], skip_special_tokens=False)
    for path in ("fast", "byte-table"):
        streamed = on(path, llama3, ids, stop)
        assert (streamed.text, streamed.finish) == ("Bye extra", None)
    for path in STYLES:
        streamed = on(path, llama3, ids, stop, skip=False)
        assert streamed.text == "Bye"
        assert streamed.finish == StopFinish(stop, 3, 3, 3 + len(stop))
    assert stop_warnings([stop], [stop], True)[0].startswith(f"stop '{stop}' is the special token")


def test_e8_sglangs_scheduler_sees_special_tokens(llama3: Vocabulary) -> None:
    """It stops, and its detokenizer, which skips them, finds nothing to trim."""
    ids = [*llama3.encode("Bye"), 128010, *llama3.encode(" extra")]
    stop = llama3.decode([128010], skip_special_tokens=False)
    streamed = on("batch-decode", llama3, ids, stop)
    assert (streamed.text, streamed.finish) == ("Bye", StopFinish(stop, 3))


@pytest.mark.parametrize("path", STYLES)
def test_e9_an_empty_stop_is_refused(llama3: Vocabulary, path: str) -> None:
    with pytest.raises(DetokbenchError) as caught:
        on(path, llama3, [606], "stop", "")
    streaming.assert_error(caught, ExitCode.USAGE, "empty stop string")


def test_e10_a_fixed_hold_delays_the_first_text(llama3: Vocabulary) -> None:
    ids = llama3.encode("A quick brown fox jumps over the lazy dog and then it sleeps")
    pieces = [llama3.decode([token_id]) for token_id in ids]
    assert len(pieces) == 13
    assert fixed_hold(pieces, ["x" * 30]).first_text_step == 7
    assert fixed_hold(pieces, ["x" * 30]).longest_held == 29
    # The "x" of " fox" may begin the stop, for as long as a step.
    assert prefix_hold(pieces, ["x" * 30]) == HoldMetrics(1, 1, 1)
    assert prefix_hold(pieces, ["y" * 30]) == HoldMetrics(1, 1, 1)
    assert prefix_hold(pieces, ["!" * 30]) == HoldMetrics(1, 0, 0)


@pytest.mark.parametrize("path", STYLES)
@pytest.mark.parametrize("size", SIZES)
def test_e11_a_stop_that_begins_another(llama3: Vocabulary, path: str, size: int) -> None:
    stops = [">>>>>>> UPDATED", ">>>>>>> UPDATED\n"]
    text = "int main\n>>>>>>> UPDATED\nmore"
    merged = llama3.encode(text)
    spelled = [token for char in text for token in llama3.encode(char)]
    for ids in (merged, spelled):
        if path == "batch-decode" and ids is spelled:
            continue  # below: its window is sized by the merged spelling
        streamed = on(path, llama3, ids, *stops, size=size)
        assert streamed.text == "int main\n"
        assert streamed.finish is not None
        assert streamed.finish.matched == stops[0]


def test_e11_sglang_misses_a_stop_spelled_by_characters(llama3: Vocabulary) -> None:
    """Right is "int main\\n": the tail window holds as many tokens as the canonical spelling."""
    text = "int main\n>>>>>>> UPDATED\nmore"
    spelled = [token for char in text for token in llama3.encode(char)]
    streamed = on("batch-decode", llama3, spelled, ">>>>>>> UPDATED")
    assert (streamed.text, streamed.finish) == (text, None)


def test_e12_a_fixed_hold_splits_tokens() -> None:
    assert fixed_hold(["a,", "b"], ["b,c"]) == HoldMetrics(2, 2, 1)
    pieces = ["<think>", "so", " it", " is"]
    assert fixed_hold(pieces, ["0123456789"]) == HoldMetrics(3, 9, 2)
    assert prefix_hold(pieces, ["0123456789"]) == HoldMetrics(1, 0, 0)


def test_the_metrics_of_a_stream_that_a_stop_ends() -> None:
    """The cut where the stop begins is no hold."""
    assert prefix_hold(["ab", "c</", "x", "y</s", ">z"], ["</s>"]) == HoldMetrics(1, 3, 2)
    assert hold_metrics(["ab"], []) == HoldMetrics(None, 0, 0)


@pytest.mark.parametrize("path", STYLES)
@pytest.mark.parametrize("size", SIZES)
def test_f2_a_stop_before_the_last_ids_of_a_step(llama3: Vocabulary, path: str, size: int) -> None:
    ids = llama3.encode("ok STOP and then five more words here")
    assert on(path, llama3, ids, "STOP", size=size).finish == StopFinish("STOP", 2, 3, 7)
    ids = llama3.encode("a gene 🧬 here")
    streamed = on(path, llama3, ids, "🧬", size=size)
    assert (streamed.text, streamed.finish) == ("a gene ", StopFinish("🧬", 5, 7, 8))


# SGLang's trim.


def trim_ids(llama3: Vocabulary) -> list[int]:
    """A stop spelled out first, which the window misses, then in its canonical tokens."""
    spelled = [token for char in "</answer>" for token in llama3.encode(char)]
    rest = llama3.encode(" is the mark: 42</answer>")
    return [*llama3.encode("say"), *spelled, *rest]


def test_the_trim_is_at_the_first_occurrence(llama3: Vocabulary) -> None:
    """What was sent stays: the reader has the first stop and the text up to the held chunk."""
    streamed = on("batch-decode", llama3, trim_ids(llama3), "</answer>")
    assert streamed.text == "say</answer> is the mark: 42"
    assert isinstance(streamed.stream, TokenStops)
    assert (streamed.stream.trimmed_at, streamed.stream.fired_at) == (3, 28)
    assert streamed.finish == StopFinish("</answer>", len(trim_ids(llama3)), 3, 12)


def test_the_trim_takes_back_nothing_and_adds_nothing(llama3: Vocabulary) -> None:
    """In one step the window is widened to the first occurrence, and all is right."""
    streamed = on("batch-decode", llama3, trim_ids(llama3), "</answer>", size=99)
    assert streamed.text == "say"
    assert isinstance(streamed.stream, TokenStops)
    assert (streamed.stream.trimmed_at, streamed.stream.fired_at) == (3, 3)


def test_a_regex_match_is_not_trimmed(llama3: Vocabulary) -> None:
    """The detokenizer looks for the text of the pattern, as if it were a stop string."""
    ids = llama3.encode("a 12 b 345 c")
    streamed = on("batch-decode", llama3, ids, regexes=(r"\d{3}",))
    assert (streamed.text, streamed.finish) == ("a 12 b 345", StopFinish(r"\d{3}", 6))
    streamed = on("batch-decode", llama3, llama3.encode("so END here"), regexes=("END",))
    assert streamed.text == "so "


# Stop ids, kept stops, regexes.


@pytest.mark.parametrize("path", STYLES)
@pytest.mark.parametrize("size", SIZES)
def test_a_stop_id_is_kept_and_its_text_is_not(llama3: Vocabulary, path: str, size: int) -> None:
    ids = llama3.encode("ok ha ha ha and then more")
    streamed = on(path, llama3, ids, stop_ids=[6520, 323], size=size)
    assert (streamed.text, streamed.finish) == ("ok", StopFinish(6520, 2))
    streamed = on(path, llama3, ids, stop_ids=[6520, 323], keep_stop=True, size=size)
    assert (streamed.text, streamed.finish) == ("ok ha", StopFinish(6520, 2))


@pytest.mark.parametrize("path", STYLES)
@pytest.mark.parametrize("size", SIZES)
def test_a_kept_stop_is_in_the_text(llama3: Vocabulary, path: str, size: int) -> None:
    ids = llama3.encode("ok STOPPED and then")
    streamed = on(path, llama3, ids, "STOP", size=size, keep_stop=True)
    assert streamed.text == "ok STOP"
    assert streamed.finish is not None
    assert (streamed.finish.begin, streamed.finish.end) == (3, 7)


@pytest.mark.parametrize("path", OVER_TEXT)
def test_a_kept_stop_needs_no_hold(llama3: Vocabulary, path: str) -> None:
    streamed = on(path, llama3, [791, 4062, 14198, 39935], "own foxes", keep_stop=True)
    assert streamed.deltas == ["The", " quick", " brown", " fox", ""]


def test_a_stop_id_within_min_tokens(llama3: Vocabulary) -> None:
    """The engines' schedulers stop there; their samplers see to it that it is not drawn."""
    ids = llama3.encode("ok ha ha ha")
    assert on("byte-table", llama3, ids, stop_ids=[6520], min_tokens=2).finish == StopFinish(
        6520, 3
    )
    for path in ("fast", "slow", "batch-decode"):
        assert on(path, llama3, ids, stop_ids=[6520], min_tokens=2).finish == StopFinish(6520, 2)


@pytest.mark.parametrize("path", STYLES)
def test_a_stop_string_goes_before_the_stop_id_of_its_step(llama3: Vocabulary, path: str) -> None:
    ids = llama3.encode("ok ha ha ha and")
    streamed = on(path, llama3, ids, "a h", stop_ids=[323], size=99)
    assert (streamed.text, streamed.finish) == ("ok h", StopFinish("a h", 3, 4, 7))


def test_the_end_of_the_row_can_complete_a_stop(llama3: Vocabulary) -> None:
    """The first id of 🧬, cut off: at the end it is a U+FFFD."""
    first = llama3.encode("🧬")[0]
    for stop, text in (("\ufffd", "a"), ("\ufffdx", "a\ufffd")):
        streamed = on("byte-table", llama3, [*llama3.encode("a"), first], stop)
        assert streamed.text == text
        assert (streamed.finish is not None) == (text == "a")
    held = on("byte-table", llama3, [*llama3.encode("a"), first, 323], "\ufffd", stop_ids=[323])
    assert held.finish == StopFinish("\ufffd", 3, 1, 2)
    assert on("fast", llama3, [*llama3.encode("a"), first], "\ufffd").text == "a"


@pytest.mark.parametrize("path", OVER_TEXT)
def test_regexes_where_there_are_none(llama3: Vocabulary, path: str) -> None:
    with pytest.raises(DetokbenchError) as caught:
        on(path, llama3, [606], regexes=("a+",))
    streaming.assert_error(caught, ExitCode.USAGE, "no stop regexes")


# Characters and matcher against a plain model, over pieces of text in place of ids.


class Pieces:
    """A row whose ids are the numbers of its pieces; it ends with a text of its own."""

    def __init__(self, pieces: Sequence[str], last: str = "") -> None:
        self._pieces, self._last = pieces, last

    def step(self, new_ids: list[int]) -> str:
        return "".join(self._pieces[i] for i in new_ids)

    def end(self) -> str:
        return self._last


Model = tuple[str, StopFinish | None]


def plain_model(pieces: Sequence[str], request: StopRequest) -> Model:
    """Look at the text after each id for the stop that ends first, in what this id added."""
    ends = [0, *accumulate(map(len, pieces))]
    text = "".join(pieces)
    for kept in range(request.min_tokens + 1, len(pieces) + 1):
        places = [
            (end, number, stop)
            for end in range(ends[kept - 1] + 1, ends[kept] + 1)
            for number, stop in enumerate(request.strings)
            if text[:end].endswith(stop)
        ]
        if places:
            end, _, stop = min(places)
            cut = end if request.keep_stop else end - len(stop)
            return text[:cut], StopFinish(stop, kept, end - len(stop), end)
        if kept - 1 in request.stop_ids:
            cut = ends[kept] if request.keep_stop else ends[kept - 1]
            return text[:cut], StopFinish(kept - 1, kept)
    return text, None


letters = "ab<🧬\u0301"
piece_lists = st.lists(st.text(letters, max_size=4), max_size=12)
requests = st.builds(
    StopRequest,
    strings=st.lists(st.text(letters, min_size=1, max_size=4), max_size=4).map(tuple),
    stop_ids=st.sets(st.integers(0, 20), max_size=2).map(frozenset),
    min_tokens=st.integers(0, 6),
    keep_stop=st.booleans(),
)


def drop_text_of_stop_ids(pieces: list[str], request: StopRequest) -> list[str]:
    """A stop id that is left out completes no stop string."""
    if request.keep_stop:
        return pieces
    return ["" if i in request.stop_ids else piece for i, piece in enumerate(pieces)]


@settings(max_examples=600)
@given(pieces=piece_lists, request=requests, size=st.sampled_from(SIZES))
def test_characters_and_matcher_against_the_model(
    pieces: list[str], request: StopRequest, size: int
) -> None:
    # Within min_tokens engines and matcher differ in stop ids, by themselves: see above.
    after = frozenset(i for i in request.stop_ids if i >= request.min_tokens)
    request = StopRequest(request.strings, (), after, request.min_tokens, request.keep_stop)
    pieces = drop_text_of_stop_ids(pieces, request)
    text, finish = plain_model(pieces, request)
    for stream in (CharacterStops(request, Pieces(pieces)), MatcherStops(request, Pieces(pieces))):
        streamed = run(stream, range(len(pieces)), size)
        assert (streamed.text, streamed.finish) == (text, finish)


@settings(max_examples=300)
@given(
    pieces=piece_lists,
    last=st.text(letters, max_size=3),
    request=requests,
    size=st.sampled_from(SIZES),
)
def test_the_matcher_is_the_same_for_every_number_of_ids(
    pieces: list[str], last: str, request: StopRequest, size: int
) -> None:
    one = run(MatcherStops(request, Pieces(pieces, last)), range(len(pieces)), 1)
    several = run(MatcherStops(request, Pieces(pieces, last)), range(len(pieces)), size)
    assert (several.text, several.finish) == (one.text, one.finish)


@settings(max_examples=300)
@given(pieces=piece_lists, strings=requests.map(lambda request: request.strings))
def test_holds_by_step(pieces: list[str], strings: tuple[str, ...]) -> None:
    """vLLM holds the longest stop less one, ours at most that; each delta is what a hold leaves."""
    longest = max(map(len, strings), default=1) - 1
    request = StopRequest(strings)
    fixed = CharacterStops(request, Pieces(pieces))
    ours = MatcherStops(request, Pieces(pieces))
    text = ""
    for number, piece in enumerate(pieces):
        fixed.step([number])
        ours.step([number])
        if ours.finish is not None:
            break
        text += piece
        assert len(fixed.held) == min(longest, len(text))
        assert fixed.held.endswith(ours.held)
        assert text.endswith(fixed.held)


@pytest.mark.parametrize("path", ["fast", "slow"])
@pytest.mark.parametrize("script", ["code", "burmese", "emoji"])
def test_vllm_rows_give_the_same_one_id_at_a_time(
    llama3: Vocabulary, path: str, script: str
) -> None:
    """The row is fed ids one by one; by itself the path takes a step's ids together."""
    ids = streaming.script_ids("llama-3")[script][:300]
    (together,) = streaming.stream(streaming.build(path, llama3), [ids], ids_per_step=7)
    assert on(path, llama3, ids, "no such text", size=7).text == together


# Tokens against a model of SGLang's detokenizer, whose last message takes a branch of its own.


class EngineDetokenizer:
    """One request in the detokenizer, with the last message and its trim as the engine has them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ids: list[int] = []
        self._surr = self._read = self._sent = 0
        self._decoded = ""

    def message(self, ids: list[int], finish: StopFinish | None, ended: bool, keep: bool) -> str:
        self._ids += ids
        window = self._ids[self._surr :]
        matched = finish.matched if finish else None
        if isinstance(matched, int) and not keep:
            window = window[:-1]
        before = self._vocabulary.decode(self._ids[self._surr : self._read])
        new = self._vocabulary.decode(window)[len(before) :]
        text = self._decoded + new
        if ended:
            if isinstance(matched, str) and matched in text:
                text = text[: text.find(matched) + len(matched) * keep]
            return text[self._sent :]
        if new and not new.endswith("\ufffd"):
            self._decoded, self._surr, self._read = text, self._read, len(self._ids)
        else:
            text = self._decoded + printable_prefix(new)
        delta = text[self._sent :]
        self._sent = len(text)
        return delta


class Recorder:
    """A row that writes down what it is given."""

    def __init__(self) -> None:
        self.messages: list[list[int]] = []

    def step(self, new_ids: list[int]) -> str:
        self.messages.append(new_ids)
        return ""

    def end(self) -> str:
        return ""


def engine_deltas(
    vocabulary: Vocabulary, ids: list[int], request: StopRequest, size: int
) -> list[str]:
    """What the engine sends a step: the scheduler's decisions are ours, the text is the model's."""
    recorder, detokenizer = Recorder(), EngineDetokenizer(vocabulary)
    scheduler = TokenStops(request, recorder, vocabulary.encode, vocabulary.tokenizer.decode)
    deltas, handed_over = [], 0
    for at in range(0, len(ids), size):
        scheduler.step(ids[at : at + size])
        finish = scheduler.finish
        if finish is not None:
            rest = ids[handed_over : finish.kept_ids]
            return [*deltas, detokenizer.message(rest, finish, True, request.keep_stop)]
        now = sum(map(len, recorder.messages))
        new_ids, handed_over = ids[handed_over:now], now
        deltas.append(detokenizer.message(new_ids, None, False, False) if new_ids else "")
    return [*deltas, detokenizer.message(ids[handed_over:], None, True, False)]


@settings(max_examples=150)
@given(data=st.data())
def test_the_row_gives_what_the_engines_last_message_gives(data: st.DataObject) -> None:
    llama3 = streaming.vocabulary("llama-3")
    script = data.draw(st.sampled_from(sorted(streaming.script_ids("llama-3"))))
    ids = streaming.script_ids("llama-3")[script]
    start = data.draw(st.integers(0, max(len(ids) - 40, 0)))
    ids = ids[start : start + 40]
    text = llama3.decode(ids)
    stops = [
        text[at : at + length]
        for at, length in data.draw(
            st.lists(
                st.tuples(st.integers(0, max(len(text) - 1, 0)), st.integers(1, 9)), max_size=2
            )
        )
    ]
    stop_ids = data.draw(st.sets(st.sampled_from(ids), max_size=1))
    keep = data.draw(st.booleans())
    request = StopRequest(tuple(filter(None, stops)), (), frozenset(stop_ids), 0, keep)
    size = data.draw(st.sampled_from(SIZES))
    row = PathRow(streaming.build("batch-decode", llama3), [], Flags())
    stream = TokenStops(request, row, llama3.encode, llama3.tokenizer.decode)
    deltas = run(stream, ids, size).deltas
    expected = engine_deltas(llama3, ids, request, size)
    assert deltas[: len(expected)] == expected
    assert not any(deltas[len(expected) :])


# What is refused and what is warned about.


def test_stops_without_detokenisation_are_refused() -> None:
    refuse_stops_without_text([], [], detokenize=False)
    refuse_stops_without_text(["a"], [], detokenize=True)
    for strings, regexes in ((["a\n"], []), ([], ["a\n"])):
        with pytest.raises(DetokbenchError) as caught:
            refuse_stops_without_text(strings, regexes, detokenize=False)
        streaming.assert_error(caught, ExitCode.USAGE, r"stop 'a\n' needs text")


@pytest.mark.parametrize("style", ["characters", "tokens", "matcher"])
def test_a_request_that_is_not_detokenised_stops_on_ids_alone(style: StopStyle) -> None:
    def opened(request: StopRequest) -> StopStream:
        return open_stop_stream(style, request, None, lambda text: [], lambda ids: "")

    with pytest.raises(DetokbenchError) as caught:
        opened(StopRequest(strings=("END",)))
    streaming.assert_error(caught, ExitCode.USAGE, "stop 'END' needs text")
    stream = opened(StopRequest(stop_ids=frozenset({7})))
    assert (stream.step([5, 7, 9]), stream.end()) == ("", "")
    assert stream.finish is not None
    assert (stream.finish.matched, stream.finish.kept_ids) == (7, 2)


def test_an_empty_stop_is_named_by_its_place() -> None:
    refuse_empty_stop(" ", "--stop")
    with pytest.raises(DetokbenchError) as caught:
        refuse_empty_stop("", "stop[1]")
    streaming.assert_error(caught, ExitCode.USAGE, "stop[1]: an empty stop string")


def test_warnings_about_stops_that_text_does_not_contain() -> None:
    special = {"<|eot|>", "<|eot|><|x|>"}
    assert stop_warnings(["END", "<|eo"], special, True) == []
    (line,) = stop_warnings(["\n<|eot|>"], special, True)
    assert line.startswith(
        r"stop '\n<|eot|>' contains the special token '<|eot|>': it cannot match"
    )
    assert stop_warnings(["<|eot|>"], special, False) == []
    (line,) = stop_warnings(["a\ufffd"], special, True)
    assert "contains U+FFFD" in line


def fixed_hold(pieces: Sequence[str], strings: Sequence[str]) -> HoldMetrics:
    """As vLLM streams these pieces with these stop strings."""
    return hold_metrics(
        pieces, _deltas(CharacterStops(StopRequest(tuple(strings)), _Pieces(pieces)), len(pieces))
    )


def prefix_hold(pieces: Sequence[str], strings: Sequence[str]) -> HoldMetrics:
    """As our matcher streams them. Raises a usage error for an empty stop string."""
    return hold_metrics(
        pieces, _deltas(MatcherStops(StopRequest(tuple(strings)), _Pieces(pieces)), len(pieces))
    )


def _deltas(stream: StopStream, steps: int) -> list[str]:
    """What goes out after each step, up to the one before the stream's end."""
    deltas = []
    for step in range(steps):
        delta = stream.step([step])
        if stream.finish is not None:
            break
        deltas.append(delta)
    return deltas


class _Pieces:
    """A row whose ids are the numbers of its pieces."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def step(self, new_ids: list[int]) -> str:
        return "".join(self._pieces[i] for i in new_ids)

    def end(self) -> str:
        return ""
