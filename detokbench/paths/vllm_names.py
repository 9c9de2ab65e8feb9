"""What the ``vllm`` paths take from the installed vLLM, each name looked up once."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Any

from detokbench.paths.installed_engine import built_upon, find
from detokbench.paths.protocol import Flags
from detokbench.stops.request import StopRequest
from detokbench.vocab.vocabulary import Vocabulary

# Nothing of a GPU is asked for, and what vLLM logs must not lie among a record.
_ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}
NO_STOPS = StopRequest()


@cache
def name_of(module: str, name: str) -> Any:
    """``vllm.<module>.<name>``. Raises DetokbenchError that says what is missing."""
    for variable, value in _ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    found = find("vllm", f"vllm.{module}", name)
    logging.getLogger("vllm").setLevel(logging.CRITICAL)  # it logs every id that is none
    return found


def engine_request(
    request_id: str, prompt: list[int], flags: Flags, stops: StopRequest = NO_STOPS
) -> Any:
    """An ``EngineCoreRequest`` that streams deltas, as the front end makes it of a completion.

    Fields are given by name, those without a default as None: where one has been added, removed
    or renamed, vLLM says which.
    """
    params_class = name_of("sampling_params", "SamplingParams")
    kind = name_of("sampling_params", "RequestOutputKind")
    request_class = name_of("v1.engine", "EngineCoreRequest")
    with built_upon("vllm", "SamplingParams"):
        params = params_class(
            stop=list(stops.strings) or None,
            min_tokens=stops.min_tokens,
            max_tokens=None,
            include_stop_str_in_output=stops.keep_stop,
            skip_special_tokens=flags.skip_special_tokens,
            spaces_between_special_tokens=flags.spaces_between_special_tokens,
            output_kind=kind.DELTA,
        )
    with built_upon("vllm", "EngineCoreRequest"):
        return request_class(
            request_id=request_id,
            prompt_token_ids=prompt,
            mm_features=None,
            sampling_params=params,
            pooling_params=None,
            arrival_time=0.0,
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
            external_req_id=request_id,
        )


_tokenizers: dict[int, tuple[Any, Any]] = {}


def tokenizer_of(vocabulary: Vocabulary) -> Any:
    """The vocabulary's tokenizer as vLLM holds it.

    A transformers tokenizer goes through vLLM's own ``get_cached_tokenizer``; Mistral's are loaded
    anew from their files by vLLM's own wrapper. Kept, since both take a while.
    """
    held = _tokenizers.get(id(vocabulary.tokenizer))
    if held is None:
        held = vocabulary.tokenizer, _make_tokenizer(vocabulary)
        _tokenizers[id(vocabulary.tokenizer)] = held
    return held[1]


def _make_tokenizer(vocabulary: Vocabulary) -> Any:
    from detokbench.vocab.mistral import MistralTokenizer, transformers_tokenizer

    if not isinstance(vocabulary.tokenizer, MistralTokenizer):
        get_cached_tokenizer = name_of("tokenizers.hf", "get_cached_tokenizer")
        with built_upon("vllm", "get_cached_tokenizer"):
            return get_cached_tokenizer(vocabulary.tokenizer)
    wrapper = name_of("tokenizers.mistral", "MistralTokenizer")
    with built_upon("vllm", "MistralTokenizer"):
        return wrapper(transformers_tokenizer(vocabulary.tokenizer))
