"""One decode step of a Llama in PyTorch, small enough to read and laid out to be fast.

Every sequence of the batch has the same length, so the step needs no mask and no page table:
each new token attends to the whole KV cache up to itself. The query, key and value projections
are one matrix and so are gate and up, as engines fuse them. Tensors are plain, without modules.

torch is imported at the top: import this module only inside functions that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F

from detokbench.tstep.shapes import ModelShape

LLAMA_3_ROPE_THETA = 500_000.0
_RMS_EPS = 1e-5
# As transformers initialises a Llama; the size of the activations stays reasonable.
_WEIGHT_STD = 0.02


class LayerWeights(NamedTuple):
    """One layer. Matrices are (out, in), as ``linear`` wants them."""

    attention_norm: torch.Tensor
    qkv: torch.Tensor
    output: torch.Tensor
    mlp_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


class LlamaWeights(NamedTuple):
    """All weights. ``head`` is ``embedding`` itself where the embeddings are tied."""

    embedding: torch.Tensor
    layers: list[LayerWeights]
    norm: torch.Tensor
    head: torch.Tensor


class LayerCache(NamedTuple):
    """Static keys and values of one layer: (batch, kv_heads, length, head_dim) each."""

    keys: torch.Tensor
    values: torch.Tensor


class Rotary(NamedTuple):
    """Cosines and sines by position: (length, head_dim), the second half repeats the first."""

    cos: torch.Tensor
    sin: torch.Tensor


class Place(NamedTuple):
    """Where the new tokens stand in their sequences, and the rotation (head_dim,) there."""

    position: int
    cos: torch.Tensor
    sin: torch.Tensor


LayerFunction = Callable[[ModelShape, LayerWeights, torch.Tensor, LayerCache, Place], torch.Tensor]


def decode_step(
    shape: ModelShape,
    weights: LlamaWeights,
    cache: list[LayerCache],
    rotary: Rotary,
    ids: torch.Tensor,
    *,
    position: int,
    layer_function: LayerFunction | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Put the tokens ``ids`` (batch,) at ``position`` of every sequence.

    Writes their keys and values into the cache and returns the logits (batch, vocab) and the
    next ids (batch,), chosen greedily. ``layer_function`` is ``decoder_layer`` or a compiled one.
    """
    layer_function = layer_function or decoder_layer
    place = Place(position, rotary.cos[position], rotary.sin[position])
    hidden = F.embedding(ids, weights.embedding)
    for layer, layer_cache in zip(weights.layers, cache, strict=True):
        hidden = layer_function(shape, layer, hidden, layer_cache, place)
    logits = F.linear(_norm(hidden, weights.norm), weights.head)
    return logits, logits.argmax(dim=-1)


def decoder_layer(
    shape: ModelShape,
    layer: LayerWeights,
    hidden: torch.Tensor,
    cache: LayerCache,
    place: Place,
) -> torch.Tensor:
    """Attention and MLP of one layer, each added to the residual stream (batch, hidden)."""
    normed = _norm(hidden, layer.attention_norm)
    hidden = hidden + _attention(shape, layer, normed, cache, place)
    return hidden + _mlp(layer, _norm(hidden, layer.mlp_norm))


def _attention(
    shape: ModelShape,
    layer: LayerWeights,
    normed: torch.Tensor,
    cache: LayerCache,
    place: Place,
) -> torch.Tensor:
    batch, head_dim, kv_heads = normed.shape[0], shape.head_dim, shape.kv_heads
    sizes = [count * head_dim for count in (shape.heads, kv_heads, kv_heads)]
    query, key, value = F.linear(normed, layer.qkv).split(sizes, dim=-1)
    # The query heads that share a KV head stand where several query tokens would: every one of
    # them sees the whole cache, so this is grouped-query attention that reads each key once.
    query = _rotate(query.view(batch, kv_heads, shape.heads // kv_heads, head_dim), place)
    cache.keys[:, :, place.position] = _rotate(key.view(batch, kv_heads, head_dim), place)
    cache.values[:, :, place.position] = value.view(batch, kv_heads, head_dim)
    keys, values = (part[:, :, : place.position + 1] for part in cache)
    mixed = F.scaled_dot_product_attention(query, keys, values)
    return F.linear(mixed.reshape(batch, -1), layer.output)


def _mlp(layer: LayerWeights, normed: torch.Tensor) -> torch.Tensor:
    gate, up = F.linear(normed, layer.gate_up).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, layer.down)


def _norm(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(hidden, weight.shape, weight, _RMS_EPS)


def _rotate(heads: torch.Tensor, place: Place) -> torch.Tensor:
    first, second = heads.chunk(2, dim=-1)
    return heads * place.cos + torch.cat((-second, first), dim=-1) * place.sin


def make_rotary(
    shape: ModelShape,
    length: int,
    device: torch.device,
    dtype: torch.dtype,
    theta: float = LLAMA_3_ROPE_THETA,
) -> Rotary:
    """Angles for positions below ``length``, computed in float32 and kept in ``dtype``."""
    exponents = torch.arange(0, shape.head_dim, 2, device=device).float() / shape.head_dim
    positions = torch.arange(length, device=device).float()
    angles = torch.outer(positions, theta**-exponents).repeat(1, 2)
    return Rotary(angles.cos().to(dtype), angles.sin().to(dtype))


def random_weights(
    shape: ModelShape, device: torch.device, dtype: torch.dtype, seed: int = 0
) -> LlamaWeights:
    """Normally distributed weights, made in place on the device: no copy, no download.

    Not zeros, because the power a multiplication draws depends on its operands, and the clock
    depends on the power.
    """
    generator = torch.Generator(device).manual_seed(seed)

    def matrix(rows: int, columns: int) -> torch.Tensor:
        empty = torch.empty(rows, columns, device=device, dtype=dtype)
        return empty.normal_(0.0, _WEIGHT_STD, generator=generator)

    def ones() -> torch.Tensor:
        return torch.ones(shape.hidden, device=device, dtype=dtype)

    query_size, kv_size = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    embedding = matrix(shape.vocab, shape.hidden)
    layers = [
        LayerWeights(
            attention_norm=ones(),
            qkv=matrix(query_size + 2 * kv_size, shape.hidden),
            output=matrix(shape.hidden, query_size),
            mlp_norm=ones(),
            gate_up=matrix(2 * shape.intermediate, shape.hidden),
            down=matrix(shape.hidden, shape.intermediate),
        )
        for _ in range(shape.layers)
    ]
    head = embedding if shape.tied else matrix(shape.vocab, shape.hidden)
    return LlamaWeights(embedding, layers, ones(), head)


def random_cache(
    shape: ModelShape,
    batch: int,
    length: int,
    device: torch.device,
    dtype: torch.dtype,
    *,
    seed: int = 0,
) -> list[LayerCache]:
    """A static KV cache for ``length`` tokens of each sequence, filled as if they were there."""
    generator = torch.Generator(device).manual_seed(seed)

    size = (batch, shape.kv_heads, length, shape.head_dim)

    def tensor() -> torch.Tensor:
        return torch.empty(size, device=device, dtype=dtype).normal_(generator=generator)

    return [LayerCache(tensor(), tensor()) for _ in range(shape.layers)]


def load_from_transformers(state: Mapping[str, torch.Tensor], shape: ModelShape) -> LlamaWeights:
    """The weights of a transformers LlamaForCausalLM, fused as this step wants them."""

    def layer(index: int) -> LayerWeights:
        prefix = f"model.layers.{index}."
        attention = [state[f"{prefix}self_attn.{name}_proj.weight"] for name in "qkv"]
        mlp = [state[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up")]
        return LayerWeights(
            attention_norm=state[prefix + "input_layernorm.weight"],
            qkv=torch.cat(attention),
            output=state[prefix + "self_attn.o_proj.weight"],
            mlp_norm=state[prefix + "post_attention_layernorm.weight"],
            gate_up=torch.cat(mlp),
            down=state[prefix + "mlp.down_proj.weight"],
        )

    embedding = state["model.embed_tokens.weight"]
    return LlamaWeights(
        embedding=embedding,
        layers=[layer(index) for index in range(shape.layers)],
        norm=state["model.norm.weight"],
        head=embedding if shape.tied else state["lm_head.weight"],
    )
