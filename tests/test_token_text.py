"""Token text: bytes and text of single ids, alternatives after what was sampled."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import vocabulary
from test_reference import NO_IDS, VOCABULARIES, ids_of

from detokbench.vocab.reference import ReferenceStream
from detokbench.vocab.token_text import TokenText, alternative_texts, token_texts


def texts(listed: list[TokenText]) -> list[str]:
    return [token.text for token in listed]


def test_the_id_that_completes_a_character_has_it(llama3):
    first, last = token_texts(llama3, [15722, 103])
    assert first == TokenText(15722, b"\xe6\xad", "")
    assert last == TokenText(103, b"\xaa", "歪")


def test_alternatives_stand_in_the_sampled_context_and_never_after_one_another(llama3):
    got = alternative_texts(llama3, [15722, 103], 1, [103, 245, 103])
    assert texts(got) == ["歪", "歗", "歪"]
    assert [token.data for token in got] == [b"\xaa", b"\x97", b"\xaa"]


def test_an_alternative_that_breaks_the_character_shows_it(llama3):
    assert texts(alternative_texts(llama3, [15722, 103], 1, [1917])) == ["\ufffd world"]
    assert texts(alternative_texts(llama3, [15722, 103], 2, [1917])) == [" world"]


def test_what_is_no_id_has_no_text_and_raises_nothing(llama3):
    ids = [-1, -12345, 2**32, 2**63, *NO_IDS]
    assert token_texts(llama3, ids) == [TokenText(i, None, "") for i in ids]
    assert alternative_texts(llama3, [15722], 1, ids) == [TokenText(i, None, "") for i in ids]


def test_a_leading_space_stays_but_at_a_true_start(spm_fast):
    assert texts(token_texts(spm_fast, [22557, 22557])) == [" Hello", " Hello"]
    assert texts(token_texts(spm_fast, [22557, 22557], context=[])) == ["Hello", " Hello"]
    assert texts(token_texts(spm_fast, [22557], context=[12014])) == [" Hello"]
    assert texts(alternative_texts(spm_fast, [22557], 0, [22557, 12014])) == [" Hello", " hi"]


def test_a_character_that_the_prompt_opened_is_the_output_s(llama3):
    assert texts(token_texts(llama3, [103], context=[9906, 15722])) == ["歪"]


def test_special_tokens_have_their_text_unless_skipped(llama3):
    assert texts(token_texts(llama3, [128009])) == ["<|eot_id|>"]
    (skipped,) = token_texts(llama3, [128009], skip_special_tokens=True)
    assert skipped == TokenText(128009, b"<|eot_id|>", "")


def test_a_position_outside_the_text_is_refused(llama3):
    for position in (-1, 3):
        with pytest.raises(IndexError, match="of 2 sampled ids"):
            alternative_texts(llama3, [15722, 103], position, [103])


@pytest.mark.parametrize("name", VOCABULARIES)
def test_joined_texts_are_the_text_and_alternatives_agree_with_it(name):
    vocab = vocabulary(name)

    @settings(max_examples=150)
    @given(ids_of(name), ids_of(name), st.booleans(), st.data())
    def check(context, ids, skip, data):
        listed = token_texts(vocab, ids, context, skip)
        reference = ReferenceStream(vocab.id_bytes, context, skip)
        assert "".join(texts(listed)) == reference.step(ids)
        if ids:
            position = data.draw(st.integers(0, len(ids) - 1))
            others = data.draw(ids_of(name))
            (*_, last) = alternative_texts(
                vocab, ids, position, [*others, ids[position]], context, skip
            )
            assert last == listed[position]

    check()
