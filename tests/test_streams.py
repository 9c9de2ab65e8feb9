from pathlib import Path

import msgspec
import pytest
from streaming import script_ids, vocabulary

from detokbench.workload.scenario import Scenario, load_scenario, override
from detokbench.workload.streams import ADMIT_ROWS, Workload, build_workload, output_tokens
from detokbench.workload.texts import load_text, sentences, text_names

SEED = 7
NOWHERE = Path("/nonexistent")


def scenario(**changes) -> Scenario:
    base, _ = load_scenario("llama3-multilingual")
    return override(base, **changes)


@pytest.fixture(scope="module")
def workload(llama3) -> Workload:
    return build_workload(llama3, scenario(), NOWHERE, SEED)


def test_every_row_has_its_length(workload):
    assert len(workload.prompts) == len(workload.outputs) == 256
    assert {len(prompt) for prompt in workload.prompts} == {128}
    lengths = [len(output) for output in workload.outputs]
    assert lengths == [256] + [128] * 31 + [64] * 224


def heads(workload: Workload) -> list[tuple[int, ...]]:
    """What the shortest output of a row has."""
    return [tuple(output[:64]) for output in workload.outputs]


@pytest.mark.parametrize("seed", [1, SEED, 8])
@pytest.mark.parametrize("name", ["llama3-chat", "llama3-multilingual"])
def test_every_row_has_text_of_its_own(name, seed, llama3):
    shipped, folder = load_scenario(name)
    workload = build_workload(llama3, shipped, folder, seed)
    assert len(set(heads(workload))) == 256


def test_text_of_one_sentence_is_dealt_to_every_row(llama3, tmp_path):
    (tmp_path / "one.txt").write_text("One sentence.")
    one = msgspec.structs.replace(scenario(batches=[3], prompt_len=5), texts=["one.txt"])
    workload = build_workload(llama3, one, tmp_path, SEED)
    assert len(set(heads(workload))) == 1


def test_rows_take_their_texts_in_turn(workload, llama3):
    texts = scenario().texts
    for row in (0, 1, 19, 20, 39):
        starts = [part[:20] for part in sentences(load_text(texts[row % len(texts)]))]
        assert any(llama3.decode(workload.outputs[row]).startswith(start) for start in starts)


@pytest.mark.parametrize("name", ["llama-3", "tekken", "mistral-spm", "mistral-spm-fast"])
def test_outputs_begin_where_a_sentence_begins(name):
    loaded = vocabulary(name)
    workload = build_workload(loaded, scenario(batches=[40], prompt_len=33), NOWHERE, SEED)
    texts = scenario().texts
    for row, output in enumerate(workload.outputs):
        text = loaded.decode(output)
        assert "\ufffd" not in text.rstrip("\ufffd")  # only the cut at its end may split one
        starts = [part[:8] for part in sentences(load_text(texts[row % len(texts)]))]
        assert any(text.startswith(start) for start in starts)


def test_prompts_end_where_a_sentence_ends(workload, llama3):
    texts = scenario().texts
    for row, prompt in enumerate(workload.prompts):
        parts = sentences(load_text(texts[row % len(texts)]))
        assert any(prompt[-len(ids) :] == ids[-128:] for ids in map(llama3.encode, parts)), row


@pytest.mark.parametrize("name", text_names())
def test_sentences_are_the_whole_text_in_short_parts(name):
    text = load_text(name)
    parts = sentences(text)
    assert "".join(parts) == text
    assert len(parts) >= 20
    assert max(map(len, parts)) <= 110


def test_prompts_longer_than_the_text_are_filled(llama3):
    length = 3 * max(map(len, script_ids("llama-3").values()))
    workload = build_workload(llama3, scenario(batches=[2], prompt_len=length), NOWHERE, SEED)
    assert [len(prompt) for prompt in workload.prompts] == [length] * 2


def test_same_seed_gives_the_same_rows_and_another_seed_others(llama3):
    small = scenario(batches=[20])
    first, again, other = (
        build_workload(llama3, small, NOWHERE, seed) for seed in (SEED, SEED, SEED + 1)
    )
    assert first == again
    assert all(a != b for a, b in zip(first.outputs, other.outputs, strict=True))
    assert first.admit_prompts != other.admit_prompts


def test_a_row_is_the_same_in_a_larger_batch(llama3, workload):
    smaller = build_workload(llama3, scenario(batches=[1, 32]), NOWHERE, SEED)
    assert smaller.prompts == workload.prompts[:32]
    assert smaller.outputs == workload.outputs[:32]


def test_admitted_prompts_have_their_lengths_and_a_first_id(workload):
    assert list(workload.admit_prompts) == [128, 1024, 8192, 32768]
    for length, prompts in workload.admit_prompts.items():
        assert [len(prompt) for prompt in prompts] == [length] * ADMIT_ROWS
        assert len(set(map(tuple, prompts))) == ADMIT_ROWS
    assert len(workload.admit_first_ids) == ADMIT_ROWS


@pytest.mark.parametrize(("batch", "tokens"), [(1, 256), (8, 256), (9, 128), (64, 128), (65, 64)])
def test_output_is_long_for_few_rows_and_short_for_many(batch, tokens):
    assert output_tokens(batch) == tokens


@pytest.mark.parametrize(
    ("batch", "ids_per_step", "steps"), [(1, 1, 256), (1, 3, 85), (32, 1, 128), (256, 3, 21)]
)
def test_steps_give_every_row_the_same_number_of_ids(workload, batch, ids_per_step, steps):
    made = workload.steps(batch, ids_per_step)
    assert len(made) == steps
    assert {len(step) for step in made} == {batch}
    assert {len(ids) for step in made for ids in step} == {ids_per_step}


@pytest.mark.parametrize("ids_per_step", [1, 3])
def test_steps_are_the_outputs_in_order(workload, ids_per_step):
    made = workload.steps(32, ids_per_step)
    for row in range(32):
        joined = [token_id for step in made for token_id in step[row]]
        assert joined == workload.outputs[row][: len(joined)]
