"""The byte table against an incremental decoder over the joined bytes, on random ids."""

from codecs import getincrementaldecoder
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import build, vocabulary

from detokbench.paths import Flags
from detokbench.vocab.id_bytes import IdBytes, is_whole_text

VOCABULARIES = ("llama-3", "tekken", "mistral-spm-fast")
BAD_IDS = (-1, -(2**63), 2**31, 2**32, 2**63, None, 1.0, float("nan"), "7")
EXAMPLES = settings(max_examples=250)


class Reference:
    """What a row must have sent: the bytes so far, decoded as far as characters are settled."""

    def __init__(self, table: IdBytes, flags: Flags, prompt: list[int]) -> None:
        self._pieces = table.pieces
        self._skipped = table.special_ids if flags.skip_special_tokens else frozenset()
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._at_start = table.strips_leading_space
        self._take(prompt)

    def _take(self, ids: list) -> str:
        data = b"".join(self._pieces[i] for i in ids if is_id(i, self) and i not in self._skipped)
        if data and self._at_start:
            data, self._at_start = data.removeprefix(b" "), False
        return self._decoder.decode(data)

    def __len__(self) -> int:
        return len(self._pieces)

    def step(self, ids: list) -> str:
        return self._take(ids)

    def end(self) -> str:
        return self._decoder.decode(b"", final=True)


def is_id(token_id: object, reference: Reference) -> bool:
    return isinstance(token_id, int) and 0 <= token_id < len(reference)


@cache
def ids_of(name: str, bad: bool = False) -> st.SearchStrategy[list]:
    """Ids of the whole range, with more split characters and special ids than chance gives."""
    table = vocabulary(name).id_bytes
    split = [i for i, piece in enumerate(table.pieces) if not is_whole_text(piece)]
    spaces = [i for i, piece in enumerate(table.pieces) if piece and not piece.strip(b" ")]
    kinds = [
        st.integers(0, len(table.pieces) - 1),
        st.sampled_from(split),
        st.sampled_from(sorted(table.special_ids) + spaces),
    ]
    if bad:
        kinds.append(st.sampled_from((*BAD_IDS, len(table.pieces))))
    return st.lists(st.one_of(kinds), max_size=25)


FLAGS = st.builds(Flags, st.booleans(), st.booleans())


@st.composite
def steps_of(draw, name: str, bad: bool = False) -> list[list]:
    """Random ids, cut into steps of random size, empty ones among them."""
    ids = draw(ids_of(name, bad))
    cuts = sorted(draw(st.lists(st.integers(0, len(ids)), max_size=len(ids))))
    return [ids[a:b] for a, b in zip([0, *cuts], [*cuts, len(ids)], strict=True)]


@pytest.mark.parametrize("name", VOCABULARIES)
def test_text_is_the_decoded_bytes_for_every_chunking(name):
    table = vocabulary(name).id_bytes

    @EXAMPLES
    @given(steps_of(name), FLAGS)
    def check(steps, flags):
        path = build("byte-table", vocabulary(name))
        (row,) = path.open([[]], [flags])
        text = "".join(path.step([row], [ids])[0] for ids in steps) + path.end(row)
        skipped = table.special_ids if flags.skip_special_tokens else ()
        data = b"".join(table.pieces[i] for ids in steps for i in ids if i not in skipped)
        if table.strips_leading_space:
            data = data.removeprefix(b" ")
        assert text == data.decode("utf-8", "replace")
        assert path.bad_ids == 0

    check()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_each_step_sends_all_that_is_settled_and_a_prompt_is_continued(name):
    table = vocabulary(name).id_bytes

    @EXAMPLES
    @given(ids_of(name), steps_of(name), FLAGS)
    def check(prompt, steps, flags):
        path = build("byte-table", vocabulary(name))
        reference = Reference(table, flags, prompt)
        (row,) = path.open([prompt], [flags])
        for ids in steps:
            assert path.step([row], [ids]) == [reference.step(ids)]
        assert path.end(row) == reference.end()

    check()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_rows_do_not_touch_each_other(name):
    table = vocabulary(name).id_bytes
    a_row = st.tuples(ids_of(name), steps_of(name), FLAGS)

    @EXAMPLES
    @given(st.lists(a_row, min_size=2, max_size=4), st.randoms(use_true_random=False))
    def check(rows, rng):
        path = build("byte-table", vocabulary(name))
        waiting = list(rows)
        live = []
        while waiting or live:
            if waiting:
                prompt, steps, flags = waiting.pop()
                (number,) = path.open([prompt], [flags])
                live.append((number, list(steps), Reference(table, flags, prompt)))
            rng.shuffle(live)
            served = [row for row in live[: rng.randint(1, len(live))] if row[1]]
            new_ids = [steps.pop(0) for _, steps, _ in served]
            expected = [row[2].step(ids) for row, ids in zip(served, new_ids, strict=True)]
            assert path.step([number for number, _, _ in served], new_ids) == expected
            for row in [row for row in live if not row[1]]:
                live.remove(row)
                assert path.end(row[0]) == row[2].end()

    check()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_bad_ids_are_counted_and_change_nothing(name):
    table = vocabulary(name).id_bytes

    @EXAMPLES
    @given(steps_of(name, bad=True), FLAGS)
    def check(steps, flags):
        reference = Reference(table, flags, [])
        path = build("byte-table", vocabulary(name))
        (row,) = path.open([[]], [flags])
        for ids in steps:
            assert path.step([row], [ids]) == [reference.step(ids)]
        path.end(row)
        assert path.bad_ids == sum(not is_id(i, reference) for ids in steps for i in ids)

    check()
