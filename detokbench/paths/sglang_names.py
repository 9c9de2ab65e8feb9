"""What the ``sglang`` paths take from the installed SGLang, each name looked up once."""

from __future__ import annotations

import copy
import sys
import warnings
from array import array
from functools import cache
from importlib import import_module
from typing import Any

from detokbench.errors import DetokbenchError
from detokbench.paths.installed_engine import built_upon, find, named, why_absent
from detokbench.paths.protocol import Flags
from detokbench.stops.request import StopRequest
from detokbench.vocab.vocabulary import Vocabulary

# SGLang asks torchvision at import; a build for CUDA beside a torch without it lacks these.
_VISION_SCHEMAS = ("torchvision::nms", "torchvision::qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_NO_LENGTH = 1 << 40


@cache
def name_of(module: str, name: str) -> Any:
    """``sglang.<module>.<name>``. Raises DetokbenchError that says what is missing."""
    absent = why_absent("sglang")
    if absent is not None:
        raise DetokbenchError(absent)
    _make_torchvision_importable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about kernels that a box without a GPU cannot have
        return find("sglang", f"sglang.{module}", name)


@cache
def _make_torchvision_importable() -> None:
    """Declare the operators of torchvision that its own import misses; they are never called."""
    try:
        import_module("torchvision")
    except ImportError:
        return  # SGLang will say so, if it minds
    except RuntimeError:
        import torch

        for module in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[module]
        for schema in _VISION_SCHEMAS:
            torch.library.define(schema, _SCHEMA)


_tokenizers: dict[int, tuple[Any, Any]] = {}


def tokenizer_of(vocabulary: Vocabulary) -> Any:
    """The vocabulary's tokenizer as SGLang holds it: a copy with what its loader adds.

    Mistral's vocabularies are loaded anew from their files by transformers' wrapper, which SGLang
    patches. Kept, since that takes a while.
    """
    held = _tokenizers.get(id(vocabulary.tokenizer))
    if held is None:
        held = vocabulary.tokenizer, _make_tokenizer(vocabulary)
        _tokenizers[id(vocabulary.tokenizer)] = held
    return held[1]


def _make_tokenizer(vocabulary: Vocabulary) -> Any:
    from detokbench.vocab.mistral import MistralTokenizer, transformers_tokenizer

    attach = name_of("srt.utils.hf_transformers.common", "attach_additional_stop_token_ids")
    if isinstance(vocabulary.tokenizer, MistralTokenizer):
        patch = name_of("srt.utils.hf_transformers.mistral_utils", "patch_mistral_common_tokenizer")
        tokenizer = transformers_tokenizer(vocabulary.tokenizer)
        with built_upon("sglang", "patch_mistral_common_tokenizer"):
            patch(tokenizer)
    else:
        tokenizer = copy.copy(vocabulary.tokenizer)
    with built_upon("sglang", "attach_additional_stop_token_ids"):
        attach(tokenizer)
    return tokenizer


def detokenizer_manager(tokenizer: Any, size: int, batch_decode: bool) -> Any:
    """A DetokenizerManager without sockets: what its start-up sets is set here, nothing else."""
    module = "srt.managers.detokenizer_manager"
    manager_class = name_of(module, "DetokenizerManager")
    capacity = name_of(module, "DETOKENIZER_MAX_STATES")
    manager = manager_class.__new__(manager_class)
    manager.tokenizer = tokenizer
    manager.vocab_size = size
    manager.decode_status = name_of(module, "LimitedCapacityDict")(capacity=capacity)
    manager.disable_tokenizer_batch_decode = not batch_decode
    manager.is_tool_call_parser_gpt_oss = False
    manager.tool_close_token_ids = ()
    if not hasattr(manager_class, "handle_batch_token_id_out"):
        raise DetokbenchError(
            f"{named('sglang')} has no DetokenizerManager.handle_batch_token_id_out"
        )
    return manager


def batch_message(**fields: Any) -> Any:
    """A BatchTokenIDOutput with these fields; all others are None.

    Raises DetokbenchError that names a field which the installed version does not have.
    """
    message_class = name_of("srt.managers.io_struct", "BatchTokenIDOutput")
    known = _fields_of(message_class)
    for field in fields:
        if field not in known:
            raise DetokbenchError(f"BatchTokenIDOutput of {named('sglang')} has no field {field}")
    with built_upon("sglang", "BatchTokenIDOutput"):
        return message_class(**(dict.fromkeys(known) | fields))


@cache
def _fields_of(message_class: Any) -> tuple[str, ...]:
    """Fields of a msgspec Struct or of a dataclass: SGLang has had both."""
    found = getattr(message_class, "__struct_fields__", None)
    found = found or getattr(message_class, "__dataclass_fields__", None)
    if found is None:
        raise DetokbenchError(f"BatchTokenIDOutput of {named('sglang')} has no list of its fields")
    return tuple(found)


def scheduler_request(
    name: str, prompt: list[int], flags: Flags, stops: StopRequest, tokenizer: Any
) -> Any:
    """A ``Req`` as the scheduler holds it, with stops, streamed, without an end at a length."""
    params_class = name_of("srt.sampling.sampling_params", "SamplingParams")
    with built_upon("sglang", "SamplingParams"):
        params = params_class(
            max_new_tokens=_NO_LENGTH,
            stop=list(stops.strings) or None,
            stop_regex=list(stops.regexes) or None,
            stop_token_ids=set(stops.stop_ids) or None,
            min_new_tokens=stops.min_tokens,
            no_stop_trim=stops.keep_stop,
            skip_special_tokens=flags.skip_special_tokens,
            spaces_between_special_tokens=flags.spaces_between_special_tokens,
        )
        params.normalize(tokenizer)
    with built_upon("sglang", "Req"):
        request = name_of("srt.managers.schedule_batch", "Req")(
            name, "", array("q", prompt), params, stream=True
        )
        request.tokenizer = tokenizer
    return request


def without_end_token(tokenizer: Any) -> Any:
    """A tokenizer that ends no request by itself: a stream's stops are those it was given."""
    changed = copy.copy(tokenizer)
    changed.__class__ = type("Endless", (type(tokenizer),), {"eos_token_id": None})
    return changed
