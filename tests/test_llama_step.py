"""Our decode step against transformers' Llama, token by token through the static cache."""

import pytest

from detokbench.tstep.shapes import ModelShape

torch = pytest.importorskip("torch")

CPU = torch.device("cpu")
GROUPED = ModelShape("grouped", 3, 64, 8, 2, 16, 96, 211)
TIED = ModelShape("tied", 2, 32, 4, 4, 8, 48, 97, tied=True)
WIDE_HEADS = ModelShape("wide-heads", 2, 32, 4, 1, 16, 48, 97)
LENGTH, BATCH, THETA = 12, 3, 10_000.0


def reference(shape):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        tie_word_embeddings=shape.tied,
        rms_norm_eps=1e-5,
        attn_implementation="eager",
        # Wide enough that the logits differ from one another by far more than the tolerance.
        initializer_range=0.2,
    )
    return transformers.LlamaForCausalLM(config).to(torch.float32).eval()


@pytest.mark.parametrize("shape", [GROUPED, TIED, WIDE_HEADS], ids=lambda shape: shape.name)
def test_logits_agree_with_transformers(shape: ModelShape) -> None:
    from detokbench.tstep.llama import (
        decode_step,
        load_from_transformers,
        make_rotary,
        random_cache,
    )

    model = reference(shape)
    ids = torch.randint(shape.vocab, (BATCH, LENGTH))
    weights = load_from_transformers(model.state_dict(), shape)
    cache = random_cache(shape, BATCH, LENGTH, CPU, torch.float32)
    rotary = make_rotary(shape, LENGTH, CPU, torch.float32, theta=THETA)
    with torch.inference_mode():
        expected = model(ids, use_cache=False).logits
        for position in range(LENGTH):
            logits, next_ids = decode_step(
                shape, weights, cache, rotary, ids[:, position], position=position
            )
            torch.testing.assert_close(logits, expected[:, position], atol=1e-4, rtol=0)
            assert torch.equal(next_ids, expected[:, position].argmax(-1))
    assert expected.std() > 0.1


def test_random_weights_hold_as_many_values_as_the_shape_counts() -> None:
    from detokbench.tstep.llama import random_cache, random_weights

    for shape in (GROUPED, TIED, WIDE_HEADS):
        weights = random_weights(shape, CPU, torch.float32)
        tensors = [weights.embedding, weights.norm, *(t for layer in weights.layers for t in layer)]
        tensors += [] if shape.tied else [weights.head]
        assert sum(tensor.numel() for tensor in tensors) == shape.total_params
        cache = random_cache(shape, 2, 5, CPU, torch.float32)
        values = sum(tensor.numel() for part in cache for tensor in part)
        assert values == 2 * 5 * shape.kv_values_per_token


def test_the_step_writes_only_its_own_position() -> None:
    from detokbench.tstep.llama import decode_step, make_rotary, random_cache, random_weights

    weights = random_weights(GROUPED, CPU, torch.float32)
    cache = random_cache(GROUPED, 2, 6, CPU, torch.float32)
    before = [layer.keys.clone() for layer in cache]
    rotary = make_rotary(GROUPED, 6, CPU, torch.float32)
    decode_step(GROUPED, weights, cache, rotary, torch.tensor([1, 2]), position=4)
    for old, layer in zip(before, cache, strict=True):
        changed = (old != layer.keys).any(dim=-1).all(dim=1).all(dim=0)
        assert changed.tolist() == [False, False, False, False, True, False]


def test_a_layer_is_one_graph_for_the_compiler() -> None:
    from detokbench.tstep.llama import (
        decode_step,
        decoder_layer,
        make_rotary,
        random_cache,
        random_weights,
    )

    weights = random_weights(GROUPED, CPU, torch.float32)
    cache = random_cache(GROUPED, 2, 6, CPU, torch.float32)
    rotary = make_rotary(GROUPED, 6, CPU, torch.float32)
    ids = torch.tensor([1, 2])
    compiled = torch.compile(decoder_layer, fullgraph=True, dynamic=False, backend="eager")
    with torch.inference_mode():
        eager, _ = decode_step(GROUPED, weights, cache, rotary, ids, position=5)
        traced, _ = decode_step(
            GROUPED, weights, cache, rotary, ids, position=5, layer_function=compiled
        )
    torch.testing.assert_close(traced, eager)
