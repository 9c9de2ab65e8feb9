"""Shrinking, describing and choosing differences; and that known faults are found unaided."""

from functools import cache

import pytest

from detokbench.paths import load_path_class, path_names
from detokbench.paths.decode_stream_window import DecodeStreamWindow
from detokbench.records.verify import Difference, Seen, StreamFacts
from detokbench.verify.corpus import cut_texts, orders_of_kinds, text_ids
from detokbench.verify.essential import essential
from detokbench.verify.find import Finder
from detokbench.verify.fuzz import Fuzz
from detokbench.verify.judge import judge
from detokbench.verify.kinds import Kind, kind_of, representatives, shape
from detokbench.verify.laws import Law
from detokbench.verify.show import id_list, trace_command
from detokbench.verify.shrink import Shrinker
from detokbench.verify.stream import Runner, Stream
from detokbench.verify.tally import Tally
from detokbench.verify.tasks import Bench, runners_for
from detokbench.verify.truth import Truth
from detokbench.verify.work import ShadowDiffersError, growth_class, growth_of
from tests.streaming import VOCABULARIES, vocabulary

SPM = "mistral-spm-fast"


def tally_of(vocab, streams, paths, sizes=(1,)):
    on = vocabulary(vocab)
    runners = {name: Runner(load_path_class(name), on) for name in paths}
    tally = Tally()
    for stream in streams:
        truth = Truth(stream, on)
        for name, runner in runners.items():
            if runner.can_judge(stream):
                result = judge(runner, stream, truth, sizes)
                tally.add(name, stream, result, shape(on.id_bytes, stream.prompt, stream.output))
    return tally, Finder(on, runners)


def seen_by(difference, path):
    return next(seen for seen in difference.seen if seen.path == path)


class TestShrinker:
    def test_what_does_not_matter_is_taken_out_and_the_rest_made_plain(self):
        stream = Stream(tuple(range(40)), (*range(100, 160), 7, 8, *range(200, 260)))

        def breaks(candidate, ids_per_step):
            return 7 in candidate.output and len(candidate.output) > 1

        small, ids_per_step = Shrinker(breaks, [1]).shrink(stream, 4, 60)
        assert ids_per_step == 1
        assert small.prompt == ()
        assert sorted(small.output) == [1, 7]

    def test_what_needs_two_parts_far_from_each_other_keeps_both(self):
        stream = Stream((), tuple(range(100)))
        small, _ = Shrinker(lambda s, n: {3, 96} <= set(s.output), []).shrink(stream, 1, 96)
        assert small.output == (3, 96)

    def test_it_ends_for_a_fault_that_never_shows_again(self):
        stream = Stream((), tuple(range(1000)))
        assert Shrinker(lambda s, n: False, [1]).shrink(stream, 3, 5) == (stream, 3)


class TestFoundUnaided:
    """The streams here know nothing of any path; what they find is pinned by name."""

    def test_a_look_back_that_starts_inside_a_character(self):
        texts = {"emoji": text_ids(vocabulary(SPM))["emoji"]}
        tally, finder = tally_of(SPM, cut_texts(texts), ["slow", "batch-decode", "byte-table"])
        found = finder.differences(tally, {Law.ONE_SHOT})
        for path in ("slow", "batch-decode"):
            assert tally.broken[path, Law.ONE_SHOT]
            small = min(
                (d for d in found if any(seen.path == path for seen in d.seen)),
                key=lambda d: len(d.input.prompt) + len(d.input.output),
            )
            seen = seen_by(small, path)
            assert "\ufffd" not in seen.expected
            assert "\ufffd" in seen.text or seen.text != small.right
        assert not [key for key in tally.broken if key[0] == "byte-table"]

    @pytest.mark.parametrize("vocab", ["llama-3", SPM])
    def test_a_genuine_replacement_character_at_the_end_never_comes(self, vocab):
        on = vocabulary(vocab)
        streams = list(orders_of_kinds(on.id_bytes, on, 0))
        tally, finder = tally_of(vocab, streams, ["slow", "fast"])
        found = finder.differences(tally, {Law.COMPLETE})
        genuine = [d for d in found if d.kinds == [Kind.GENUINE]]
        for path in ("slow", "fast"):
            assert any(
                Law.COMPLETE in seen.laws and seen.text + "\ufffd" == d.right
                for d in genuine
                for seen in d.seen
                if seen.path == path
            )

    def test_decode_stream_raises_on_a_run_of_bytes_and_the_recovery_loses_one(self):
        on = vocabulary(SPM)
        streams = list(orders_of_kinds(on.id_bytes, on, 0))
        runner = Runner(load_path_class("fast"), on)
        rebuilt = [s for s in streams if runner.run(s, 1).counted.get("rebuilt_streams")]
        assert rebuilt
        lost = [s for s in rebuilt if len(runner.run(s, 1).text) < len(Truth(s, on).text)]
        assert lost

    @pytest.mark.parametrize("path", ["fast", "batch-decode", "row-decode", "rust-batch"])
    def test_windows_grow_on_output_that_never_becomes_text(self, path):
        grown = {g.stream: g for g in growth_of(load_path_class(path), vocabulary("llama-3"))}
        assert grown["one special token, repeated"].growth == "linear"
        assert grown["text without a newline"].growth == "flat"

    def test_another_decode_stream_than_the_modelled_one_is_no_silent_gap(self, monkeypatch):
        monkeypatch.setattr(DecodeStreamWindow, "step", lambda self, token_id: "other")
        with pytest.raises(ShadowDiffersError):
            list(growth_of(load_path_class("fast"), vocabulary("llama-3")))

    def test_the_cure_has_no_work_that_grows(self):
        grown = list(growth_of(load_path_class("byte-table"), vocabulary("llama-3")))
        assert {g.growth for g in grown} == {"flat"}
        assert {g.ids_a_step[-1] for g in grown} == {0.0}


@pytest.mark.parametrize(
    ("means", "growth"),
    [([1, 1, 1], "flat"), ([0, 0, 0], "flat"), ([8, 16, 32], "linear"), ([8, 32, 128], "worse")],
)
def test_growth_is_told_from_lengths_that_double(means, growth):
    assert growth_class(means) == growth


@cache
def fuzz_of(vocab, seed=0):
    return Fuzz(vocabulary(vocab), seed)


class TestFuzz:
    def test_a_stream_is_the_same_whatever_ran_before_it(self):
        fuzz = fuzz_of("llama-3")
        alone = fuzz.stream(7)
        assert [*fuzz.streams(range(8))][7] == alone == Fuzz(vocabulary("llama-3"), 0).stream(7)
        assert Fuzz(vocabulary("llama-3"), 1).stream(7) != alone

    def test_it_makes_every_kind_of_stream(self):
        streams = list(fuzz_of("llama-3").streams(range(300)))
        table = vocabulary("llama-3").id_bytes
        kinds = {kind_of(table, i) for s in streams for i in s.output}
        assert kinds >= {Kind.OPEN, Kind.MIDDLE, Kind.GENUINE, Kind.SPECIAL, Kind.UNKNOWN, Kind.BAD}
        assert any(s.stops.strings for s in streams)
        assert any(s.stops.stop_ids for s in streams)
        assert any(s.stops.min_tokens for s in streams)
        assert any(not s.flags.skip_special_tokens for s in streams)
        assert any(not s.ended for s in streams)
        assert any(s.prompt for s in streams) and any(not s.prompt for s in streams)

    @pytest.mark.parametrize("vocab", VOCABULARIES)
    def test_the_cure_keeps_every_law(self, vocab):
        fuzz = fuzz_of(vocab, seed=11)
        on = vocabulary(vocab)
        runner = Runner(load_path_class("byte-table"), on)
        for number in range(600):
            stream = fuzz.stream(number)
            sizes = (1, fuzz.ids_per_step(number))
            result = judge(runner, stream, Truth(stream, on), sizes)
            assert not result.breaches, (stream, result.breaches)


def test_representatives_are_of_their_kind():
    for vocab in VOCABULARIES:
        on = vocabulary(vocab)
        for kind, ids in representatives(on.id_bytes, on.encode).items():
            for token_id in ids:
                if kind not in {Kind.BYTE_NEWLINE, Kind.BYTE_SPACE}:
                    assert kind_of(on.id_bytes, token_id) is kind


def test_every_path_is_run_where_it_applies():
    bench = Bench(tuple(path_names()), 0)
    assert "fast" in runners_for(bench, vocabulary("llama-3"))
    assert "fast" not in runners_for(bench, vocabulary("tekken"))


def difference(prompt, output, path="slow", law="complete", kinds=(), vocab="llama-3", report=""):
    return Difference(
        input=StreamFacts(vocab=vocab, prompt=prompt, output=output, ids_per_step=1),
        pieces=[],
        prompt_pieces=[],
        kinds=list(kinds),
        right="",
        seen=[Seen(path=path, laws=[law], step=1, expected="", got="", text="")],
        origin="",
        report=report,
    )


class TestEssential:
    def test_a_report_is_shown_before_what_is_smaller(self):
        small, reported = difference([], [1]), difference([1], [1, 2], report="x#1")
        assert essential([small, reported], ["llama-3"]) == ([reported], 1)

    def test_another_kind_of_input_or_path_or_law_is_kept(self):
        several = [
            difference([], [1]),
            difference([], [1], kinds=["genuine U+FFFD"]),
            difference([], [1], path="fast"),
            difference([], [1], law="bytes"),
        ]
        assert len(essential(several, ["llama-3"])[0]) == 3  # plain text shows the second already

    def test_pieces_of_characters_are_one_kind(self):
        one = difference([], [1], kinds=["beginning of a character"])
        other = difference([], [1], kinds=["end or middle of a character"])
        assert len(essential([one, other], ["llama-3"])[0]) == 1

    def test_other_vocabularies_are_named(self):
        pair = [difference([], [1]), difference([], [1, 1], vocab="tekken")]
        (kept,), left_out = essential(pair, ["llama-3", "tekken"])
        assert (kept.also, left_out) == (["tekken"], 1)


def test_ids_are_written_as_the_command_line_reads_them():
    assert id_list([1, 1, 1, 2, 3, 3]) == "1*3,2,3,3"


def test_a_command_says_all_that_is_not_default():
    facts = StreamFacts(
        vocab="tekken",
        prompt=[5],
        output=[1, 2],
        ids_per_step=None,
        skip_special_tokens=False,
        stop=["a b"],
        min_tokens=2,
        keep_stop=True,
        ended=False,
    )
    assert trace_command(facts, "slow") == (
        "detokbench trace slow --vocab tekken --prompt-ids 5 --output-ids 1,2 --ids-per-step 2 "
        "--stop 'a b' --min-tokens 2 --keep-stop --keep-special --no-end"
    )


@pytest.mark.parametrize(
    ("vocab", "output", "shown", "other"),
    [(SPM, (13, 0, 272), 1, 3), ("llama-3", (19113, 9468, 97, 245, 9468, 97, 245), 3, 1)],
)
def test_two_numbers_of_ids_a_step_are_shown_at_the_one_that_gives_wrong_text(
    vocab, output, shown, other
):
    path = "text-streamer" if vocab == SPM else "batch-decode"
    tally, finder = tally_of(vocab, [Stream((), output)], [path], (1, 3))
    found = finder.differences(tally, {Law.IDS_PER_STEP})
    (difference,) = [d for d in found if Law.IDS_PER_STEP in seen_by(d, path).laws]
    assert (difference.input.ids_per_step == 1) == (shown == 1)
    seen = seen_by(difference, path)
    assert seen.text != difference.right
    assert set(seen.laws) - {Law.IDS_PER_STEP}
    right_at = Stream((), tuple(difference.input.output))
    runner = Runner(load_path_class(path), vocabulary(vocab))
    assert runner.run(right_at, other).text == difference.right
