"""The right text: whole and incremental agree, and both say what the bytes say."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import script_ids, vocabulary

from detokbench.vocab.id_bytes import IdBytes, is_whole_text
from detokbench.vocab.reference import ReferenceStream, piece_of, reference_text, shown_bytes
from detokbench.workload.texts import load_text

VOCABULARIES = ("llama-3", "tekken", "mistral-spm-fast")
NO_IDS = (-1, -(2**63), 2**32, 2**63, None, 1.0, "7", [7])


def byte_ids(data: bytes) -> list[int]:
    """The byte pieces of mistral-spm: byte b has id 3 + b."""
    return [3 + byte for byte in data]


@cache
def ids_of(name: str) -> st.SearchStrategy[list]:
    """Ids of the whole range; split characters, special ids, spaces and no ids are common."""
    table = vocabulary(name).id_bytes
    split = [i for i, piece in enumerate(table.pieces) if not is_whole_text(piece)]
    spaces = [i for i, piece in enumerate(table.pieces) if piece and piece.startswith(b" ")]
    kinds = [
        st.integers(0, len(table.pieces) - 1),
        st.sampled_from(split),
        st.sampled_from(sorted(table.special_ids) + spaces[:50]),
        st.sampled_from((*NO_IDS, len(table.pieces))),
    ]
    return st.lists(st.one_of(kinds), max_size=20)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_incremental_equals_whole_for_every_chunking(name):
    table = vocabulary(name).id_bytes

    @settings(max_examples=400)
    @given(ids_of(name), ids_of(name), st.integers(1, 5), st.booleans())
    def check(prompt, output, size, skip):
        stream = ReferenceStream(table, prompt, skip)
        steps = [output[i : i + size] for i in range(0, len(output), size)]
        text = "".join(stream.step(ids) for ids in steps) + stream.end()
        assert text == reference_text(table, prompt, output, skip)

    check()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_prompt_and_output_share_one_text(name):
    """However one text is parted into prompt and output, the two parts give the whole."""
    table = vocabulary(name).id_bytes

    @settings(max_examples=200)
    @given(ids_of(name), st.integers(0, 20), st.booleans())
    def check(ids, cut, skip):
        whole = reference_text(table, [], ids, skip)
        output = reference_text(table, ids[:cut], ids[cut:], skip)
        before = reference_text(table, [], ids[:cut], skip)
        assert whole.endswith(output)
        complete = whole[: len(whole) - len(output)]
        assert before.startswith(complete)
        assert before[len(complete) :] in (
            "",
            "\ufffd",
        )  # the character that the prompt leaves open

    check()


@pytest.mark.parametrize("name", [*VOCABULARIES, "tekken-fast", "mistral-spm"])
def test_well_formed_text_is_the_text_and_what_decode_gives(name):
    vocab = vocabulary(name)
    for script, ids in script_ids(name).items():
        text = reference_text(vocab.id_bytes, [], ids)
        assert text == load_text(script)
        assert text == vocab.decode(ids)


@pytest.mark.parametrize(
    ("prompt", "output", "text"),
    [
        ([], [22557, 13, 243, 28708], "Hello\n\ufffda"),
        ([22557], [*byte_ids("歪".encode()), 22557], "歪 Hello"),
        ([12014, *byte_ids("🤗".encode()[:3])], byte_ids("🤗".encode()[3:]), "🤗"),
        ([12014, *byte_ids("🤗".encode()[:3])], [22557], "\ufffd Hello"),
        ([29137], [22557], " Hello"),  # a genuine U+FFFD is the prompt's
        ([], byte_ids("🤗".encode()[:3]), "\ufffd"),  # one maximal part
        ([], byte_ids(b"\x80\x80"), "\ufffd\ufffd"),  # two
        ([], [28705, 5374, 1318], " leading x"),
        ([1], [22557], "Hello"),  # a skipped special id has no text
        ([1], [1, 22557], "Hello"),
        ([28705], [5374], " leading"),  # the space that goes is the prompt's
        ([], [35, 22557], " Hello"),
        ([22557], [-1, 2**63, None, 32000, 22557], " Hello"),
    ],
)
def test_smallest_inputs(spm_fast, prompt, output, text):
    assert reference_text(spm_fast.id_bytes, prompt, output) == text


def test_special_ids_are_text_where_they_are_kept(spm_fast):
    table = spm_fast.id_bytes
    assert reference_text(table, [1], [22557, 2], skip_special_tokens=False) == " Hello</s>"
    assert reference_text(table, [], [1, 22557], skip_special_tokens=False) == "<s> Hello"


def test_each_id_makes_certain_what_it_completes(spm_fast):
    stream = ReferenceStream(spm_fast.id_bytes, [22557])
    steps = [stream.step([i]) for i in [*byte_ids("歪".encode() + b"\xf0\x9f"), 28708]]
    assert steps == ["", "", "歪", "", "", "\ufffda"]
    assert stream.open_bytes == b""
    assert stream.end() == ""
    stream.step(byte_ids(b"\xf0\x9f"))
    assert stream.open_bytes == b"\xf0\x9f"
    assert stream.end() == "\ufffd"


def test_what_is_no_id_has_no_bytes(llama3):
    for token_id in (*NO_IDS, 128256):
        assert piece_of(llama3.id_bytes, token_id) is None
    assert piece_of(llama3.id_bytes, 1917) == b" world"
    assert shown_bytes(llama3.id_bytes, [*NO_IDS, 9906, 128010], True) == b"Hello"


def test_a_gap_in_the_ids_is_no_id():
    table = IdBytes([b"a", None, b"b"], frozenset(), False, "made up")
    assert reference_text(table, [], [0, 1, 2, 3]) == "ab"
