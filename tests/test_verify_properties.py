"""The laws on random ids: kept by ``byte-table`` on three vocabularies, at any ids a step."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detokbench.paths import Flags, load_path_class
from detokbench.stops.request import StopRequest
from detokbench.verify.judge import judge
from detokbench.verify.kinds import representatives
from detokbench.verify.stream import Runner, Stream
from detokbench.verify.truth import Truth
from detokbench.vocab.reference import reference_text
from tests.streaming import vocabulary

VOCABULARIES = ("llama-3", "tekken", "mistral-spm-fast")
SIZES = (1, 2, 3, 4, 7, None)


@cache
def ids_of(name: str) -> st.SearchStrategy[list]:
    """Any ids, and as often one of each kind: pieces of characters, special, beyond the range."""
    on = vocabulary(name)
    kinds = representatives(on.id_bytes, on.encode)
    odd = [token_id for ids in kinds.values() for token_id in ids]
    one = st.sampled_from(odd) | st.integers(0, on.size - 1) | st.sampled_from([1 << 32, 1.5, "x"])
    return st.lists(one, max_size=16)


@cache
def runner_on(name: str) -> Runner:
    return Runner(load_path_class("byte-table"), vocabulary(name))


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_every_law_is_kept(name, data):
    on = vocabulary(name)
    prompt, output = data.draw(ids_of(name)), data.draw(ids_of(name))
    flags = Flags(data.draw(st.booleans()), data.draw(st.booleans()))
    stream = Stream(tuple(prompt), tuple(output), flags, ended=data.draw(st.booleans()))
    result = judge(runner_on(name), stream, Truth(stream, on), SIZES)
    assert not result.breaches


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_stops_are_found_where_plain_search_finds_them(name, data):
    on = vocabulary(name)
    output = data.draw(ids_of(name))
    text = reference_text(on.id_bytes, (), output)
    strings = data.draw(st.lists(stop_strings(text), min_size=1, max_size=3, unique=True))
    stops = StopRequest(
        tuple(strings), min_tokens=data.draw(st.integers(0, 6)), keep_stop=data.draw(st.booleans())
    )
    stream = Stream((), tuple(output), stops=stops, ended=data.draw(st.booleans()))
    result = judge(runner_on(name), stream, Truth(stream, on), SIZES)
    assert not result.breaches


def stop_strings(text: str) -> st.SearchStrategy[str]:
    """Pieces of the text, and texts that are none."""
    if not text:
        return st.text(min_size=1, max_size=4)
    begins = st.integers(0, len(text) - 1)
    pieces = st.tuples(begins, st.integers(1, 6)).map(lambda cut: text[cut[0] : sum(cut)])
    return pieces | st.text(min_size=1, max_size=4) | pieces.map(lambda piece: piece + "x")
