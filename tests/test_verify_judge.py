"""Each law of ``verify`` can be broken, and is kept by a path that does what it says."""

import pytest

from detokbench.paths import Flags, load_path_class
from detokbench.stops.request import StopRequest
from detokbench.verify.judge import judge
from detokbench.verify.laws import SAYS, Law
from detokbench.verify.stream import STEP_SIZES, Runner, Stream
from detokbench.verify.truth import Truth
from tests.streaming import vocabulary

HELLO, WORLD = 9906, 1917
WAI = [15722, 103]  # the two ids of 歪
GENUINE = 5809  # U+FFFD itself


class FakePath:
    """Sends what a function makes of all ids so far; the text of each is the reference's."""

    name = "fake"
    whose = "a test"
    expected_to_fail = ""
    thread_counts = (None,)
    summary = ""
    stops = None

    def __init__(self, change):
        self._change = change

    def __call__(self, on):
        return _FakeRows(on, self._change)

    def why_not(self, on):
        return None


class _FakeRows:
    def __init__(self, on, change):
        self._on, self._change, self._rows = on, change, {}

    def open(self, prompts, flags=None):
        from detokbench.vocab.reference import ReferenceStream

        first = len(self._rows)
        for number, prompt in enumerate(prompts, first):
            self._rows[number] = (ReferenceStream(self._on.id_bytes, prompt), [])
        return list(range(first, first + len(prompts)))

    def step(self, rows, new_ids):
        deltas = []
        for row, ids in zip(rows, new_ids, strict=True):
            reference, so_far = self._rows[row]
            so_far.append(ids)
            deltas.append(self._change(reference.step(ids), so_far))
        return deltas

    def end(self, row):
        return self._rows[row][0].end()


def broken(change, prompt, output, sizes=(1,), **settings):
    on = vocabulary("llama-3")
    stream = Stream(tuple(prompt), tuple(output), **settings)
    runner = Runner(FakePath(change), on)
    return judge(runner, stream, Truth(stream, on), sizes)


def right(text, so_far):
    return text


def test_a_path_that_does_what_it_should_keeps_every_law_that_can_be_judged():
    result = broken(right, [HELLO], [WORLD, *WAI, GENUINE, 9468], STEP_SIZES)
    assert not result.breaches
    assert result.judged == set(Law) - {Law.ONE_SHOT, Law.STOPS, Law.ROWS, Law.WORK}


def test_well_formed_text_is_judged_by_one_decode_too():
    assert Law.ONE_SHOT in broken(right, [HELLO], [WORLD, *WAI]).judged


@pytest.mark.parametrize(
    ("change", "output", "law"),
    [
        (lambda text, so_far: text + "x", [WORLD], Law.APPEND_ONLY),
        (lambda text, so_far: text * 2, [WORLD, WORLD], Law.APPEND_ONLY),
        (lambda text, so_far: "" if len(so_far) == 1 else text, [WORLD, HELLO], Law.BYTES),
        (lambda text, so_far: text or "\ufffd", WAI, Law.REPLACEMENT),
        (lambda text, so_far: "" if len(so_far) == 2 else text, [HELLO, WORLD], Law.COMPLETE),
        (lambda text, so_far: text.upper(), [HELLO, WORLD], Law.ONE_SHOT),
    ],
)
def test_a_law_is_broken(change, output, law):
    assert law in broken(change, [], output).broken


def test_text_that_is_lost_in_the_middle_is_no_false_text():
    lost = broken(lambda text, so_far: "" if len(so_far) == 2 else text, [], [HELLO, WORLD, HELLO])
    assert Law.BYTES in lost.broken
    assert Law.APPEND_ONLY not in lost.broken


def test_text_that_is_missing_at_the_end_only_is_not_counted_as_lost_in_the_middle():
    cut = broken(lambda text, so_far: "" if len(so_far) == 2 else text, [], [HELLO, WORLD])
    assert Law.COMPLETE in cut.broken
    assert Law.BYTES not in cut.broken


def test_false_text_after_the_right_end_is_not_a_missing_end():
    result = broken(lambda text, so_far: text + "\ufffd", [], [HELLO])
    assert Law.APPEND_ONLY in result.broken
    assert Law.COMPLETE in result.judged - result.broken


def test_a_path_that_raises_is_judged_by_that_alone():
    def raising(text, so_far):
        if len(so_far) == 2:
            raise ValueError("no\nmore")
        return text

    result = broken(raising, [], [HELLO, WORLD])
    assert result.broken == {Law.NO_ERROR}
    (breach,) = result.breaches
    assert breach.step == 2
    assert (breach.expected, breach.got) == ("Hello", "Hello")
    assert result.observations[1].error == "ValueError: no more"


def test_the_prompt_sent_again_is_told_from_other_false_text():
    on = vocabulary("llama-3")
    stream = Stream((HELLO, 9468, 97), (245,))  # the prompt ends inside 🤗
    again = judge(Runner(load_path_class("fast"), on), stream, Truth(stream, on), (1,))
    assert Law.PROMPT in again.broken
    for word in ("Hullo", "Hello"):  # the second comes whatever the prompt is
        other = broken(
            lambda text, so_far, word=word: word * (len(so_far) == 1) + text, [HELLO], [WORLD]
        )
        assert Law.PROMPT in other.judged - other.broken


def test_a_text_that_depends_on_the_number_of_ids_a_step_is_seen():
    assert Law.IDS_PER_STEP not in broken(right, [], [HELLO] * 4, (1, 2)).broken
    result = broken(lambda text, so_far: text + "." * len(so_far), [], [HELLO] * 4, (1, 2))
    assert Law.IDS_PER_STEP in result.broken


@pytest.mark.parametrize(("waits", "is_broken"), [(3, False), (4, True)])
def test_a_complete_character_may_wait_for_three_ids(waits, is_broken):
    def late(text, so_far):
        held = ["Hello" if ids == [HELLO] else " world" for ids in so_far]
        return "".join(held) if len(so_far) == waits + 1 else ""

    result = broken(late, [], [HELLO] + [WORLD] * waits)
    assert result.longest_wait == waits
    assert (Law.HOLD in result.broken) == is_broken


def test_the_step_that_is_named_is_the_first_wrong_one():
    result = broken(
        lambda text, so_far: text + "x" * (len(so_far) == 3), [], [HELLO, WORLD, HELLO, WORLD]
    )
    breach = next(b for b in result.breaches if b.law is Law.APPEND_ONLY)
    assert breach.step == 3
    assert breach.expected == "Hello worldHello"
    assert breach.got == "Hello worldHellox"


def test_a_stream_that_is_not_ended_owes_no_end():
    cut = broken(right, [], [HELLO, 9468], ended=False)
    assert not cut.breaches
    assert Law.COMPLETE not in cut.judged


def test_every_law_has_a_sentence():
    assert list(SAYS) == list(Law)


class TestTruthOfStops:
    def truth(self, output, *strings, **settings):
        on = vocabulary("llama-3")
        stream = Stream((), tuple(output), stops=StopRequest(tuple(strings), **settings))
        return Truth(stream, on).stopped

    def test_the_match_that_ends_first_counts_whatever_the_order(self):
        ids = vocabulary("llama-3").encode("over there now")
        for strings in (("re", "he"), ("he", "re")):
            found = self.truth(ids, *strings)
            assert (found.text, found.finish.matched) == ("over t", "he")

    def test_ties_go_by_the_order_of_the_list(self):
        ids = vocabulary("llama-3").encode("over there now")
        assert self.truth(ids, "re", "there").finish.matched == "re"
        assert self.truth(ids, "there", "re").finish.matched == "there"

    @pytest.mark.parametrize(
        ("min_tokens", "text"),
        [(0, "one"), (1, "one"), (2, "one\ntwo"), (3, "one\ntwo"), (6, "one\ntwo\nthree\nfour")],
    )
    def test_min_tokens(self, min_tokens, text):
        ids = [606, 198, 20375, 198, 28956, 198, 35124]
        assert self.truth(ids, "\n", min_tokens=min_tokens).text == text

    def test_a_stop_id_leaves_the_text_and_stays_among_the_ids(self):
        found = self.truth([HELLO, WORLD, HELLO], stop_ids=frozenset({WORLD}))
        assert (found.text, found.finish.kept_ids) == ("Hello", 2)

    def test_a_stop_string_before_the_stop_id_wins(self):
        found = self.truth([HELLO, WORLD], "ell", stop_ids=frozenset({WORLD}))
        assert (found.text, found.finish.matched) == ("H", "ell")

    def test_what_a_stop_id_cuts_short_is_shown_as_cut_short(self):
        assert self.truth([HELLO, 9468, WORLD], stop_ids=frozenset({WORLD})).text == "Hello\ufffd"


def test_flags_are_part_of_a_stream():
    kept = Stream((), (128010,), Flags(skip_special_tokens=False))
    assert Truth(kept, vocabulary("llama-3")).text == "<|python_tag|>"
    assert Truth(Stream((), (128010,)), vocabulary("llama-3")).text == ""
