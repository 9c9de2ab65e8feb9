"""T_step on paper, against the figures that the arithmetic is known to give."""

import ast
import json
import math
from pathlib import Path

import pytest

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.tstep import roofline
from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.roofline import (
    fits_in_memory,
    largest_batch,
    memory_needed_bytes,
    memory_only_s,
    ridge_batch,
    step_time_s,
)
from detokbench.tstep.shapes import find_shape, shape_from_config, shape_names

LLAMA_8B = find_shape("llama-3-8b")
H100 = find_gpu("h100-sxm")

LLAMA_8B_CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}


def t_step_s(batch: int, context: float) -> float:
    return step_time_s(LLAMA_8B, H100, batch, context).total_s


def test_parameters_of_llama_3_8b() -> None:
    assert LLAMA_8B.total_params == 8_030_261_248
    assert LLAMA_8B.embedding_params == 525_336_576
    assert LLAMA_8B.streamed_params == 8_030_261_248 - 525_336_576
    assert LLAMA_8B.kv_bytes_per_token() == 131_072


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("llama-3-70b", 70_553_706_496),
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.2-3b", 3_212_749_824),
    ],
)
def test_parameters_of_the_other_shapes(name: str, params: int) -> None:
    assert find_shape(name).total_params == params


def test_a_tied_output_head_is_still_streamed() -> None:
    tied = find_shape("llama-3.2-1b")
    assert tied.streamed_params == tied.total_params
    assert tied.streamed_params > tied.layers * tied.layer_params + tied.embedding_params


def test_batch_1_without_context_takes_4_48_ms_on_an_h100_and_3_13_on_an_h200() -> None:
    assert t_step_s(1, 0) == pytest.approx(4.48e-3, abs=0.005e-3)
    h200 = step_time_s(LLAMA_8B, find_gpu("h200"), 1, 0)
    assert h200.total_s == pytest.approx(3.13e-3, abs=0.005e-3)
    assert h200.bound == "memory"


def test_compute_of_a_sequence_the_ridge_and_a_batch_beyond_it() -> None:
    assert step_time_s(LLAMA_8B, H100, 1, 0).compute_s == pytest.approx(15.2e-6, abs=0.05e-6)
    assert ridge_batch(LLAMA_8B, H100) == pytest.approx(295, abs=0.5)
    beyond = step_time_s(LLAMA_8B, H100, 512, 0)
    assert beyond.total_s == pytest.approx(7.8e-3, abs=0.05e-3)
    assert beyond.bound == "compute"


def test_a_token_of_context_takes_39_1_ns_to_read() -> None:
    gained = t_step_s(1, 1000) - t_step_s(1, 0)
    assert gained / 1000 == pytest.approx(39.1e-9, abs=0.05e-9)


def test_batch_128_at_context_132_takes_5_14_ms() -> None:
    assert t_step_s(128, 132) == pytest.approx(5.14e-3, abs=0.005e-3)


def test_attention_flops_grow_with_context() -> None:
    short, long = (step_time_s(LLAMA_8B, H100, 1, context).flops for context in (0, 1000))
    assert long - short == 4 * 1000 * 32 * 128 * 32


def test_at_the_ridge_memory_and_compute_take_equally_long() -> None:
    for context in (0, 128, 300):
        ridge = ridge_batch(LLAMA_8B, H100, context)
        below = step_time_s(LLAMA_8B, H100, math.floor(ridge), context)
        above = step_time_s(LLAMA_8B, H100, math.ceil(ridge), context)
        assert (below.bound, above.bound) == ("memory", "compute")


def test_long_contexts_are_never_bound_by_compute() -> None:
    assert ridge_batch(LLAMA_8B, H100, 1024) == math.inf
    assert step_time_s(LLAMA_8B, H100, 100_000, 1024).bound == "memory"


# (host seconds a sequence and step, context, batch at which the host becomes late): the lines of
# the published table, H100 SXM, bf16. The crossing itself is the model's; here T_step must change
# sides within one sequence of it.
CROSSINGS = [
    (20e-6, 0, 224),
    (20e-6, 128, 298),
    (27e-6, 0, 166),
    (27e-6, 128, 204),
    (27e-6, 512, 643),
    (37e-6, 0, 121),
    (37e-6, 128, 140),
    (37e-6, 512, 264),
    (60e-6, 0, 75),
    (60e-6, 128, 81),
    (60e-6, 512, 112),
    (60e-6, 1024, 224),
    (150e-6, 0, 30),
    (150e-6, 128, 31),
    (150e-6, 512, 34),
    (150e-6, 1024, 41),
]
NEVER = [
    *((10e-6, context) for context in (0, 128, 512, 1024, 4096)),
    *((20e-6, context) for context in (512, 1024, 4096)),
    *((27e-6, context) for context in (1024, 4096)),
    *((37e-6, context) for context in (1024, 4096)),
    (60e-6, 4096),
    (150e-6, 4096),
]


@pytest.mark.parametrize(("host_s", "context", "batch"), CROSSINGS)
def test_t_step_lies_on_both_sides_of_the_known_crossings(
    host_s: float, context: int, batch: int
) -> None:
    assert t_step_s(batch - 1, context) > (batch - 1) * host_s
    assert t_step_s(batch + 1, context) < (batch + 1) * host_s


@pytest.mark.parametrize(("host_s", "context"), NEVER)
def test_t_step_stays_above_a_host_that_is_never_late(host_s: float, context: int) -> None:
    for batch in [1 << exponent for exponent in range(21)]:
        assert t_step_s(batch, context) > batch * host_s


def test_the_memory_term_alone_crosses_10_us_at_448_and_897() -> None:
    for context, batch in ((0, 448), (128, 897)):
        for near, late in ((batch - 1, False), (batch + 1, True)):
            assert (memory_only_s(LLAMA_8B, H100, near, context) < near * 10e-6) is late


def test_lower_precision_shortens_the_step() -> None:
    bf16 = step_time_s(LLAMA_8B, H100, 1, 1024)
    fp8 = step_time_s(LLAMA_8B, H100, 1, 1024, weights="fp8", kv="fp8")
    int4 = step_time_s(LLAMA_8B, H100, 1, 1024, weights="int4")
    assert fp8.total_s == pytest.approx(bf16.total_s / 2)
    assert fp8.compute_s == pytest.approx(bf16.compute_s * 989 / 1979)
    assert int4.compute_s == bf16.compute_s
    assert int4.bytes_read == LLAMA_8B.streamed_params / 2 + 1024 * 131_072


def test_fp8_computes_at_the_bf16_rate_where_there_is_no_fp8() -> None:
    a100 = find_gpu("a100-80")
    assert (
        step_time_s(LLAMA_8B, a100, 1, 0, weights="fp8").compute_s
        == step_time_s(LLAMA_8B, a100, 1, 0).compute_s
    )


def test_tensor_parallelism_divides_weights_flops_and_kv_heads() -> None:
    one, eight = (step_time_s(LLAMA_8B, H100, 64, 1024, tp=tp) for tp in (1, 8))
    assert eight.bytes_read == pytest.approx(one.bytes_read / 8)
    assert eight.flops == pytest.approx(one.flops / 8)
    # More GPUs than KV heads: each reads a whole head.
    sixteen = step_time_s(LLAMA_8B, H100, 64, 1024, tp=16)
    kv_bytes = 64 * 1024 * 131_072
    assert sixteen.bytes_read == pytest.approx((one.bytes_read - kv_bytes) / 16 + kv_bytes / 8)


def test_derate_stretches_the_whole_step() -> None:
    derated = step_time_s(LLAMA_8B, H100, 1, 0, derate=0.8)
    assert derated.total_s == pytest.approx(5.60e-3, abs=0.005e-3)
    assert derated.compute_s == pytest.approx(step_time_s(LLAMA_8B, H100, 1, 0).compute_s / 0.8)


def test_memory_bounds_the_batch() -> None:
    assert memory_needed_bytes(LLAMA_8B, 1, 0) == 2 * 8_030_261_248
    assert fits_in_memory(LLAMA_8B, H100, 256, 1024)
    assert not fits_in_memory(LLAMA_8B, H100, 512, 1024)
    assert fits_in_memory(LLAMA_8B, H100, 512, 1024, tp=2)
    assert not fits_in_memory(find_shape("llama-3-70b"), H100, 1, 0)
    assert fits_in_memory(find_shape("llama-3-70b"), H100, 1, 0, weights="fp8")


@pytest.mark.parametrize(
    "values",
    [
        {"batch": 0},
        {"context": -1},
        {"tp": 0},
        {"tp": 3},
        {"derate": 0.0},
        {"derate": 1.1},
    ],
)
def test_impossible_values_are_usage_errors(values: dict[str, float]) -> None:
    arguments = {"batch": 1, "context": 0, **values}
    with pytest.raises(DetokbenchError) as error:
        step_time_s(LLAMA_8B, H100, **arguments)  # type: ignore[arg-type]
    assert error.value.exit_code == ExitCode.USAGE


def test_the_roofline_imports_no_clock_no_files_and_nothing_heavy() -> None:
    tree = ast.parse(Path(roofline.__file__).read_text())
    modules = set()
    for node in tree.body:  # what stands under TYPE_CHECKING is not imported
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    assert modules == {"__future__", "dataclasses", "math", "typing", "detokbench.errors"}


def test_a_shape_from_a_config_equals_the_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B_CONFIG))
    shape = find_shape(str(tmp_path))
    assert shape.name == tmp_path.name
    assert shape.total_params == LLAMA_8B.total_params
    assert shape.head_dim == 128
    assert shape_from_config(tmp_path / "config.json") == shape


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "mixtral"}, "mixtral"),
        ({"model_type": None}, "does not describe a shape"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"num_key_value_heads": 5}, "5 KV heads"),
        ({"num_attention_heads": 24, "num_key_value_heads": 8}, "uneven"),
        ({"sliding_window": 4096}, "sliding window"),
    ],
)
def test_a_config_that_is_no_dense_llama_is_refused(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B_CONFIG | change))
    with pytest.raises(DetokbenchError, match=words) as error:
        shape_from_config(tmp_path)
    assert error.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(("context", "tp"), [(128, 1), (1024, 1), (4096, 2), (100, 4)])
def test_the_largest_batch_fits_and_one_more_does_not(context: int, tp: int) -> None:
    batch = int(largest_batch(LLAMA_8B, H100, context, tp=tp))
    assert fits_in_memory(LLAMA_8B, H100, batch, context, tp=tp)
    assert not fits_in_memory(LLAMA_8B, H100, batch + 1, context, tp=tp)


def test_the_largest_batch_is_none_without_room_and_endless_without_context() -> None:
    assert largest_batch(find_shape("llama-3-70b"), H100, 128) == 0
    assert largest_batch(LLAMA_8B, H100, 0) == math.inf
    assert largest_batch(LLAMA_8B, H100, 1 << 20) == 0


def test_a_config_with_a_missing_key_names_it(tmp_path: Path) -> None:
    config = {key: value for key, value in LLAMA_8B_CONFIG.items() if key != "vocab_size"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DetokbenchError, match="vocab_size"):
        shape_from_config(tmp_path)


def test_files_that_cannot_be_read_and_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(DetokbenchError, match="cannot read") as error:
        shape_from_config(tmp_path)
    assert error.value.exit_code == ExitCode.USAGE
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DetokbenchError, match="not JSON"):
        shape_from_config(tmp_path)
    with pytest.raises(DetokbenchError, match="did you mean 'llama-3-8b'"):
        find_shape("lama-3-8b")
    assert shape_names()[0] == "llama-3-8b"
