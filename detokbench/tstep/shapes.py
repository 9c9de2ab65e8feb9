"""The shape of a dense Llama-like decoder, and what a decode step reads because of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import DecodeError, Meta, Struct, ValidationError, json

from detokbench.errors import usage_error
from detokbench.grammar import nearest

DEFAULT_MODEL = "llama-3-8b"
# Families whose decode step is a Llama's. The biases of Qwen2 and the query and key norms of
# Qwen3 are left out of the counts: less than 0.02 % of the parameters.
_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True)
class ModelShape:
    """Sizes in elements. ``tied`` says that the input embedding is the output head too."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool = False

    @property
    def embedding_params(self) -> int:
        """Parameters of the input embedding, of which a step gathers one row a sequence."""
        return self.vocab * self.hidden

    @property
    def layer_params(self) -> int:
        """Parameters of one layer: four attention projections, three of the MLP, two norms."""
        query_and_output = 2 * self.hidden * self.heads * self.head_dim
        key_and_value = 2 * self.hidden * self.kv_heads * self.head_dim
        mlp = 3 * self.hidden * self.intermediate
        return query_and_output + key_and_value + mlp + 2 * self.hidden

    @property
    def streamed_params(self) -> int:
        """Parameters read in every decode step: all layers, the last norm and the output head.

        The gathered input embedding is not among them. Tied or not, the output head is read.
        """
        return self.layers * self.layer_params + self.hidden + self.embedding_params

    @property
    def total_params(self) -> int:
        """All parameters, as they lie in memory."""
        return self.streamed_params + (0 if self.tied else self.embedding_params)

    @property
    def kv_values_per_token(self) -> int:
        """Keys and values that one token of context leaves in the cache, over all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    def kv_bytes_per_token(self, bytes_per_value: float = 2) -> float:
        """Bytes of KV cache for one token of context; two bytes a value is bf16."""
        return self.kv_values_per_token * bytes_per_value


# From the config.json of each model as Meta published it.
_BUILT_IN = (
    ModelShape("llama-3-8b", 32, 4096, 32, 8, 128, 14_336, 128_256),
    ModelShape("llama-3-70b", 80, 8192, 64, 8, 128, 28_672, 128_256),
    ModelShape("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128_256, tied=True),
    ModelShape("llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128_256, tied=True),
)


def shape_names() -> list[str]:
    """Names of the shapes that come with the package."""
    return [shape.name for shape in _BUILT_IN]


def find_shape(name: str) -> ModelShape:
    """A built-in shape by name, or the shape of a folder with a ``config.json``.

    Raises DetokbenchError (exit code 2) where it is neither.
    """
    for shape in _BUILT_IN:
        if shape.name == name:
            return shape
    if Path(name).exists():
        return shape_from_config(Path(name))
    raise usage_error(f"unknown model '{name}'{nearest(name, shape_names())}")


_Size = Annotated[int, Meta(gt=0)]


class _Family(Struct):
    model_type: str = ""


class _Config(Struct):
    """The keys of ``config.json`` that decide a shape, with transformers' defaults."""

    num_hidden_layers: _Size
    hidden_size: _Size
    num_attention_heads: _Size
    intermediate_size: _Size
    vocab_size: _Size
    num_key_value_heads: _Size | None = None
    head_dim: _Size | None = None
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    use_sliding_window: bool = True


def shape_from_config(path: Path) -> ModelShape:
    """The shape that a model folder's ``config.json`` describes (or the file itself).

    Raises DetokbenchError (exit code 2) where keys are missing or the model is no dense Llama.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        text = file.read_bytes()
    except OSError as error:
        raise usage_error(f"cannot read {file}: {error.strerror}") from error
    try:
        family = json.decode(text, type=_Family).model_type
        if family not in _FAMILIES:
            raise usage_error(
                f"{file}: model_type '{family}' is not a dense Llama-like decoder; "
                f"known are: {', '.join(_FAMILIES)}"
            )
        config = json.decode(text, type=_Config)
    except ValidationError as error:
        raise usage_error(f"{file} does not describe a shape: {error}") from error
    except DecodeError as error:
        raise usage_error(f"{file} is not JSON: {error}") from error
    return _to_shape(config, file)


def _to_shape(config: _Config, file: Path) -> ModelShape:
    heads = config.num_attention_heads
    kv_heads = config.num_key_value_heads or heads
    if heads % kv_heads:
        raise usage_error(f"{file}: {heads} heads cannot share {kv_heads} KV heads evenly")
    if config.head_dim is None and config.hidden_size % heads:
        raise usage_error(f"{file}: hidden_size {config.hidden_size} over {heads} heads is uneven")
    if config.sliding_window and config.use_sliding_window:
        raise usage_error(f"{file}: a sliding window reads less KV than is counted here")
    return ModelShape(
        name=file.resolve().parent.name,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=config.head_dim or config.hidden_size // heads,
        intermediate=config.intermediate_size,
        vocab=config.vocab_size,
        tied=config.tie_word_embeddings,
    )
