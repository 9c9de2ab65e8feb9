import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import VOCABULARIES, build, script_ids, vocabulary
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from detokbench.paths import load_path_class
from detokbench.vocab import load_vocabulary
from detokbench.vocab.byte_level import byte_to_char, bytes_to_piece, piece_to_bytes
from detokbench.vocab.id_bytes import UnsupportedFamilyError, is_whole_text

GENUINE_REPLACEMENT = "\ufffd".encode()


def saved(tokenizer, tmp_path):
    """The tokenizer as a vocabulary of the user's."""
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    return load_vocabulary(str(path))


def byte_level_tokenizer():
    """The 256 bytes in byte-level spelling and no merge."""
    vocab = {char: byte for byte, char in byte_to_char().items()}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


# The byte alphabet


def test_byte_alphabet_is_that_of_the_tokenizers_crate():
    assert set(byte_to_char().values()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert (byte_to_char()[0x20], byte_to_char()[0x0A], byte_to_char()[0x41]) == ("Ġ", "Ċ", "A")


@given(st.binary())
def test_byte_alphabet_round_trip(piece):
    assert piece_to_bytes(bytes_to_piece(piece)) == piece


def test_piece_outside_the_alphabet_is_plain_text():
    assert piece_to_bytes("<｜end▁of▁text｜>") == "<｜end▁of▁text｜>".encode()


# What is known of the shipped vocabularies


@pytest.mark.parametrize(
    ("name", "not_text"),
    [
        ("llama-3", 1352),
        ("tekken", 1435),
        ("tekken-fast", 1435),
        ("mistral-spm", 128),
        ("mistral-spm-fast", 128),
    ],
)
def test_ids_that_are_not_valid_utf8_alone(name, not_text):
    pieces = vocabulary(name).id_bytes.pieces
    assert len(pieces) == vocabulary(name).size
    assert None not in pieces
    assert sum(not is_whole_text(piece) for piece in pieces) == not_text


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("llama-3", [5809, 10178, 24378, 30433, 58432, 60730, 83366]),
        ("tekken", [66122, 110200]),
        ("mistral-spm", [29137]),
        ("mistral-spm-fast", [29137]),
    ],
)
def test_ids_that_end_in_a_genuine_replacement_character(name, ids):
    pieces = vocabulary(name).id_bytes.pieces
    assert [i for i, piece in enumerate(pieces) if piece.endswith(GENUINE_REPLACEMENT)] == ids


@pytest.mark.parametrize(
    ("name", "strips", "specials"),
    [
        ("llama-3", False, 256),
        ("tekken", False, 1000),
        ("tekken-fast", False, 1000),
        ("mistral-spm", True, 2),
        ("mistral-spm-fast", True, 3),
    ],
)
def test_leading_space_and_special_ids(name, strips, specials):
    table = vocabulary(name).id_bytes
    assert table.strips_leading_space is strips
    assert len(table.special_ids) == specials


def test_byte_pieces_of_sentencepiece_are_bytes(spm, spm_fast):
    for loaded in (spm, spm_fast):
        assert loaded.id_bytes.pieces[3:259] == [bytes([byte]) for byte in range(256)]


def test_tekken_bytes_need_no_way_back_from_text_to_id(tekken):
    """A2: pieces of cut characters share their text, but not their bytes."""
    pieces = tekken.id_bytes.pieces
    assert [pieces[i] for i in (1492, 1176, 115679)] == [b" \xc3", b"\xb0", b"\xc2\x9f\xc2"]
    assert tekken.id_bytes.join([1492, 1176, 115679]) == b" \xc3\xb0\xc2\x9f\xc2"
    assert len({tekken.decode([i]) for i in range(1128, 1256)}) == 1  # bytes 0x80 to 0xff
    assert len({pieces[i] for i in range(1128, 1256)}) == 128


def test_tekken_and_its_fast_form_have_the_same_bytes(tekken, tekken_fast):
    assert tekken.id_bytes.pieces == tekken_fast.id_bytes.pieces
    assert tekken.id_bytes.special_ids == tekken_fast.id_bytes.special_ids


@pytest.mark.parametrize("name", VOCABULARIES)
def test_joined_pieces_are_the_decoded_text_of_every_script(name):
    loaded = vocabulary(name)
    for script, ids in script_ids(name).items():
        assert loaded.id_bytes.join(ids).decode() == loaded.decode(ids), script


@pytest.mark.parametrize("name", VOCABULARIES)
def test_joined_pieces_are_the_decoded_text_of_any_text(name):
    loaded = vocabulary(name)

    @settings(max_examples=150)
    @given(st.text(max_size=40))
    def check(text):
        ids = loaded.encode(text)
        assert loaded.id_bytes.join(ids).decode("utf-8", "replace") == loaded.decode(ids)

    check()


# Families that no table can stand for


def refusal(loaded):
    """Why the table is refused; the path says the same."""
    with pytest.raises(UnsupportedFamilyError) as caught:
        _ = loaded.id_bytes
    assert load_path_class("byte-table").why_not(loaded) == str(caught.value)
    with pytest.raises(UnsupportedFamilyError):
        build("byte-table", loaded)
    return str(caught.value)


def test_wordpiece_is_refused_with_the_reason(tmp_path):
    vocab = {"[UNK]": 0, "hel": 1, "##lo": 2, "world": 3}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece()
    loaded = saved(tokenizer, tmp_path)
    assert loaded.decode([1, 2, 3]) == "hello world"
    assert "WordPiece" in refusal(loaded)
    assert "depends on context" in refusal(loaded)


def test_vocabulary_without_a_decoder_is_refused(tmp_path):
    tokenizer = byte_level_tokenizer()
    tokenizer.decoder = None
    assert "no decoder" in refusal(saved(tokenizer, tmp_path))


def test_byte_level_pieces_under_a_sentencepiece_decoder_are_refused(tmp_path):
    """B6: decode itself writes Ġ for a space there, so the table must not hide it."""
    tokenizer = byte_level_tokenizer()
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    loaded = saved(tokenizer, tmp_path)
    assert loaded.decode(loaded.encode("Hello! How")) == "Hello!ĠHow"
    assert "Ġ" in refusal(loaded)


def test_table_that_disagrees_with_decode_is_refused(tmp_path):
    """A replacement over several pieces is no property of one piece."""
    vocab = {piece: i for i, piece in enumerate([*"Helo, wörld!▁", "<unk>"])}
    tokenizer = Tokenizer(models.BPE(vocab, [], unk_token="<unk>"))
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("ll", "L")]
    )
    assert "where decode gives" in refusal(saved(tokenizer, tmp_path))


def test_more_than_one_stripped_space_is_refused(tmp_path, spm_fast):
    tokenizer = json.loads(spm_fast.rust.to_str())
    tokenizer["decoder"]["decoders"][-1]["start"] = 2
    assert "strips more than one" in refusal(
        saved(Tokenizer.from_str(json.dumps(tokenizer)), tmp_path)
    )


def test_python_tokenizer_of_another_kind_is_refused(llama3):
    from dataclasses import replace

    class SomeTokenizer:
        pass

    assert "SomeTokenizer" in refusal(replace(llama3, tokenizer=SomeTokenizer(), rust=None))


def test_gap_in_the_ids_is_none_and_added_tokens_are_plain_text(tmp_path):
    tokenizer = byte_level_tokenizer()
    spelt = json.loads(tokenizer.to_str())
    spelt["model"]["vocab"]["ab"] = 300
    tokenizer = Tokenizer.from_str(json.dumps(spelt))
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    tokenizer.add_special_tokens([AddedToken("<｜end｜>", normalized=False)])
    loaded = saved(tokenizer, tmp_path)
    table = loaded.id_bytes
    think, end = 257, 258
    assert table.pieces[256:] == [None, b"<think>", "<｜end｜>".encode(), *[None] * 41, b"ab"]
    assert table.special_ids == {end}
    assert table.join([ord("a"), 299, think, end, 300]) == b"a<think>ab"
