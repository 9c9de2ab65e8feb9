"""Spellings and edges of a text, against a search through all of them."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from detokbench.vocab.id_bytes import IdBytes
from detokbench.vocab.spelling import can_appear, edges, ordinary_pieces, spellings

pieces_lists = st.lists(st.text("abc", min_size=1, max_size=3).map(str.encode), max_size=7)
short_texts = st.text("abc", min_size=1, max_size=5).map(str.encode)


def numbered(pieces):
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}


def all_spellings(text, pieces):
    if not text:
        return [[]]
    return [
        [token_id, *rest]
        for piece, token_id in pieces.items()
        if text.startswith(piece)
        for rest in all_spellings(text[len(piece) :], pieces)
    ]


def joined(ids, pieces):
    by_id = {token_id: piece for piece, token_id in pieces.items()}
    return b"".join(by_id[i] for i in ids)


@given(short_texts, pieces_lists)
def test_fewest_and_most_are_those_of_all_spellings(text, pieces):
    pieces = numbered(pieces)
    lengths = [len(ids) for ids in all_spellings(text, pieces)]
    found = spellings(text, pieces)
    if not lengths:
        assert (found.fewest, found.most) == (None, None)
        return
    assert (len(found.fewest), len(found.most)) == (min(lengths), max(lengths))
    assert joined(found.fewest, pieces) == joined(found.most, pieces) == text


@given(st.text("ab", min_size=1, max_size=3).map(str.encode), pieces_lists)
def test_a_text_can_appear_where_some_run_of_ids_holds_it(text, pieces):
    pieces = numbered(pieces)
    # A shortest run that holds it covers it with no id to spare, so its ids are at most its bytes.
    runs = (run for n in range(1, len(text) + 1) for run in product(pieces, repeat=n))
    expected = any(text in b"".join(run) for run in runs)
    assert can_appear(text, pieces, edges(text, pieces.items())) is expected


def test_edges_tell_where_an_id_reaches_over():
    found = edges(
        b"abc", {b"xabcx": 0, b"xab": 1, b"bcx": 2, b"abc": 3, b"ab": 4, b"cab": 5}.items()
    )
    assert found.containing == [0]
    assert (found.before, found.starts) == ([1, 5], {2})
    assert (found.after, found.ends) == ([2, 5], {1, 2})


def test_special_ids_and_ids_without_bytes_spell_nothing():
    table = IdBytes([b"a", b"", None, b"b", b"b"], frozenset({0}), False, "")
    assert ordinary_pieces(table) == {b"b": 3}
