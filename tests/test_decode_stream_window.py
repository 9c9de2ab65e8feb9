"""The model of DecodeStream gives what DecodeStream gives, errors included; and what paths show."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import build, script_ids, vocabulary

from detokbench.paths import Flags
from detokbench.paths.decode_stream_window import DecodeStreamWindow
from detokbench.paths.view import RowView, Viewable
from detokbench.vocab import Vocabulary
from detokbench.vocab.id_bytes import is_whole_text

VOCABULARIES = ("llama-3", "mistral-spm-fast")
NO_IDS = (-1, 2**32, 2**63, 2**70, None, 1.0, "7")
WITH_WINDOWS = ("slow", "fast", "batch-decode", "row-decode", "rust-batch", "text-streamer")


def outcome(step, *arguments) -> str | None:
    """What a step gave, or the error with its words."""
    try:
        return step(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def assert_same(vocab: Vocabulary, prompt: list[int] | None, ids: list, skip: bool = True) -> None:
    """Both streams, each on its own state, id by id; after an error too."""
    real = vocab.decode_stream(prompt, skip)
    model = DecodeStreamWindow(vocab.rust, prompt, skip)
    for place, token_id in enumerate(ids):
        expected = outcome(real.step, vocab.rust, token_id)
        assert outcome(model.step, token_id) == expected, (prompt, ids[: place + 1])


@cache
def ids_of(name: str) -> st.SearchStrategy[list]:
    table = vocabulary(name).id_bytes
    split = [i for i, piece in enumerate(table.pieces) if not is_whole_text(piece)]
    ends = [
        i for i, piece in enumerate(table.pieces) if piece and piece.endswith("\ufffd".encode())
    ]
    kinds = [
        st.integers(0, len(table.pieces) + 5),
        st.sampled_from(split),
        st.sampled_from([*ends, *sorted(table.special_ids)]),
    ]
    if name == "mistral-spm-fast":  # all bytes: control characters are bytes there, newline too
        kinds.append(st.integers(3, 258))
    return st.lists(st.one_of(kinds), max_size=25)


@pytest.mark.parametrize("name", [*VOCABULARIES, "tekken-fast"])
def test_texts_of_all_scripts(name):
    for ids in script_ids(name).values():
        assert_same(vocabulary(name), None, ids)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_prompts_that_end_anywhere_inside_characters_too(name):
    for ids in script_ids(name).values():
        for cut in range(1, min(len(ids), 60), 3):
            assert_same(vocabulary(name), ids[:cut], ids[cut : cut + 12])


@pytest.mark.parametrize("name", VOCABULARIES)
def test_random_ids_after_random_prompts(name):
    @settings(max_examples=400)
    @given(ids_of(name), ids_of(name), st.booleans())
    def check(prompt, ids, skip):
        assert_same(vocabulary(name), prompt, ids, skip)

    check()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_what_is_no_id_is_refused_alike_and_changes_nothing(name):
    assert_same(vocabulary(name), None, [400, *NO_IDS, 401, True, *NO_IDS, 402])


def test_the_byte_run_that_takes_back_a_newline(spm_fast):
    model = DecodeStreamWindow(spm_fast.rust, None, True)
    for token_id in (22557, 13, 243):
        model.step(token_id)
    with pytest.raises(Exception, match=r"^Invalid prefix encountered .*Token ID: 28708"):
        model.step(28708)
    assert_same(spm_fast, None, [22557, 13, 243, 28708, 22557, 22557])


def test_following_a_stream_past_its_errors_starts_it_anew(spm_fast):
    model = DecodeStreamWindow(spm_fast.rust, [22557], True)
    for token_id in (-1, 13, 243):
        assert model.follow(token_id) is model
    fresh = model.follow(28708)
    assert fresh is not model
    assert fresh.ids == [28708]


def test_ids_handed_to_the_tokenizer_in_a_step(llama3):
    model = DecodeStreamWindow(llama3.rust, [9906] * 10, True)
    model.step(1917)  # the prompt, prompt and id, and the one id that is kept
    assert (model.ids_handed, model.ids, model.prefix) == (10 + 11 + 1, [1917], " world")
    model.step(1917)
    assert model.ids_handed == 2 + 1
    quiet = DecodeStreamWindow(llama3.rust, None, True)
    handed = []
    for _ in range(4):
        quiet.step(128010)
        handed.append(quiet.ids_handed)
    assert handed == [1, 3, 5, 7]  # the window never moves


def test_fast_shows_the_model_of_its_stream(llama3):
    path = build("fast", llama3)
    (row,) = path.open([[9906]])
    assert path.look(row) == RowView((9906,), {"ids": 1, "prefix_index": 0}, "", True)
    path.step([row], [[15722]])
    view = path.look(row)
    assert view == RowView((9906, 15722), {"ids": 2, "prefix_index": 1}, "\ufffd", True)
    path.step([row], [[103, -1]])
    assert path.look(row).window == (15722, 103)


def test_fast_shows_the_stream_that_replaces_a_broken_one(spm_fast):
    path = build("fast", spm_fast)
    (row,) = path.open([[]])
    path.step([row], [[22557, 13, 243, 28708]])
    assert path.rebuilt_streams == 1
    assert path.look(row).window == (28708,)


def test_slow_shows_ids_for_its_tokens_and_leaves_out_skipped_ones(llama3):
    path = build("slow", llama3)
    (row,) = path.open([[9906] * 9])
    assert path.look(row) == RowView([9906] * 5, {"prefix_offset": 2, "read_offset": 7}, "")
    path.step([row], [[128009, 15722]])
    view = path.look(row)
    assert view.window == [9906] * 5 + [15722]
    assert view.held == "\ufffd"
    path.step([row], [[103]])
    assert path.look(row) == RowView([15722, 103], {"prefix_offset": 7, "read_offset": 9}, "")


@pytest.mark.parametrize("name", ["batch-decode", "row-decode", "rust-batch"])
def test_sglang_shows_its_three_offsets(llama3, name):
    path = build(name, llama3)
    (row,) = path.open([[9906] * 9])
    offsets = {"surr_offset": 0, "read_offset": 5, "sent_offset": 0}
    assert path.look(row) == RowView([9906] * 5, offsets, "")
    path.step([row], [[1917, 220, 15722]])  # what stands before the last space goes out
    view = path.look(row)
    assert view.offsets == {"surr_offset": 0, "read_offset": 5, "sent_offset": 7}
    assert view.held == "\ufffd"


def test_byte_table_shows_its_open_bytes(llama3):
    path = build("byte-table", llama3)
    (row,) = path.open([[]])
    path.step([row], [[15722]])
    assert path.look(row) == RowView(None, {"open_bytes": 2}, b"\xe6\xad")


@pytest.mark.parametrize("name", [*WITH_WINDOWS, "naive", "byte-table", "slow-uncached"])
def test_looking_changes_nothing(llama3, name):
    watched, alone = build(name, llama3), build(name, llama3)
    assert isinstance(watched, Viewable)

    @settings(max_examples=50)
    @given(ids_of("llama-3"), ids_of("llama-3"), st.booleans())
    def check(prompt, ids, skip):
        (a,), (b,) = (path.open([prompt], [Flags(skip)]) for path in (watched, alone))
        for token_id in ids:
            watched.look(a)
            assert watched.step([a], [[token_id]]) == alone.step([b], [[token_id]])
        watched.look(a)
        assert watched.end(a) == alone.end(b)

    check()


@pytest.mark.parametrize("name", WITH_WINDOWS)
def test_what_is_held_is_what_the_next_commit_sends_first(llama3, name):
    """A word after a whole character: everything held goes out with it, and the word."""

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from(llama3.encode("a 歪b 🤗\n")), max_size=12))
    def check(ids):
        path = build(name, llama3)
        (row,) = path.open([[]])
        path.step([row], [ids]) if ids else None
        held = path.look(row).held
        (delta,) = path.step([row], [llama3.encode("\n")])
        if held and not held.endswith("\ufffd"):
            assert delta.startswith(held)
        elif held:
            assert delta.startswith(held.rstrip("\ufffd"))

    check()
