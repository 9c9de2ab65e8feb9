"""Packages called ``vllm`` and ``sglang`` for a test: just what the paths ask of an engine.

Version 9.9, so that it is none that has been tried. ``changed`` replaces text in a file, to take
away a name or to change what comes out.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VLLM = {
    "vllm/__init__.py": '__version__ = "9.9"\n',
    "vllm/sampling_params.py": """
class RequestOutputKind:
    DELTA = "delta"

class SamplingParams:
    def __init__(self, stop, min_tokens, max_tokens, include_stop_str_in_output,
                 skip_special_tokens, spaces_between_special_tokens, output_kind):
        self.stop = stop or []
        self.keep = include_stop_str_in_output
        self.skip_special_tokens = skip_special_tokens
""",
    "vllm/tokenizers/__init__.py": "",
    "vllm/tokenizers/hf.py": """
def get_cached_tokenizer(tokenizer):
    return tokenizer
""",
    "vllm/v1/__init__.py": "",
    "vllm/v1/engine/__init__.py": """
class FinishReason:
    STOP, LENGTH = "stop", "length"

class EngineCoreRequest:
    def __init__(self, **fields):
        self.__dict__.update(fields)

class EngineCoreOutput:
    def __init__(self, request_id, new_token_ids, finish_reason=None, stop_reason=None):
        self.request_id, self.new_token_ids = request_id, new_token_ids
        self.finish_reason, self.stop_reason = finish_reason, stop_reason
""",
    "vllm/v1/engine/detokenizer.py": """
from tokenizers.decoders import DecodeStream

class IncrementalDetokenizer:
    def __init__(self, tokenizer, request):
        self.rust, self.stop = tokenizer._tokenizer, request.sampling_params.stop
        skip = request.sampling_params.skip_special_tokens
        self.stream = DecodeStream(ids=request.prompt_token_ids, skip_special_tokens=skip)
        self.text, self.sent, self.ids = "", 0, 0

    @classmethod
    def from_new_request(cls, tokenizer, request):
        return cls(tokenizer, request)

    def num_output_tokens(self):
        return self.ids

    def update(self, new_token_ids, stop_terminated):
        for token_id in new_token_ids:
            self.ids += 1
            try:
                self.text += self.stream.step(self.rust, token_id) or ""
            except (OverflowError, TypeError):
                continue
            for stop in self.stop:
                if stop in self.text:
                    self.text = self.text[:self.text.index(stop)]
                    return stop
        return None

    def get_next_output_text(self, finished, delta):
        end = len(self.text)
        if self.stop and not finished:
            end -= max(map(len, self.stop)) - 1
        if end <= self.sent:
            return ""
        self.sent, start = end, self.sent
        return self.text[start:end]

class SlowIncrementalDetokenizer(IncrementalDetokenizer):
    pass
""",
    "vllm/v1/engine/output_processor.py": """
from types import SimpleNamespace
from vllm.v1.engine.detokenizer import IncrementalDetokenizer

class RequestOutputCollector:
    def __init__(self, output_kind, request_id):
        self.output = None

    def get_nowait(self):
        self.output, output = None, self.output
        return output

class OutputProcessor:
    def __init__(self, tokenizer, *, log_stats, stream_interval=1):
        self.tokenizer, self.log_stats, self.open = tokenizer, log_stats, {}

    def add_request(self, request, prompt, queue):
        detokenizer = IncrementalDetokenizer.from_new_request(self.tokenizer, request)
        self.open[request.request_id] = detokenizer, queue

    def process_outputs(self, outputs, timestamp, statistics):
        assert (statistics is not None) == self.log_stats
        for output in outputs:
            if output.request_id not in self.open:
                continue
            detokenizer, queue = self.open[output.request_id]
            before = detokenizer.num_output_tokens()
            matched = detokenizer.update(output.new_token_ids, output.finish_reason == "stop")
            reason = output.stop_reason if matched is None else matched
            finished = matched is not None or output.finish_reason is not None
            kept = output.new_token_ids[:detokenizer.num_output_tokens() - before]
            text = detokenizer.get_next_output_text(finished, True)
            completion = SimpleNamespace(text=text, token_ids=kept, stop_reason=reason)
            queue.output = SimpleNamespace(outputs=[completion], finished=finished)
            if finished:
                del self.open[output.request_id]
""",
    "vllm/v1/metrics/__init__.py": "",
    "vllm/v1/metrics/stats.py": """
class IterationStats:
    pass
""",
}

SGLANG = {
    "sglang/__init__.py": '__version__ = "9.9"\n',
    "sglang/srt/__init__.py": "",
    "sglang/srt/managers/__init__.py": "",
    "sglang/srt/managers/io_struct.py": """
from dataclasses import dataclass
from typing import Any

@dataclass
class BatchTokenIDOutput:
    rids: Any
    finished_reasons: Any
    decoded_texts: Any
    decode_ids: Any
    read_offsets: Any
    skip_special_tokens: Any
    spaces_between_special_tokens: Any
    no_stop_trim: Any
    never_heard_of: Any
""",
    "sglang/srt/managers/schedule_batch.py": """
INIT_INCREMENTAL_DETOKENIZATION_OFFSET = 5
""",
    "sglang/srt/managers/detokenizer_manager.py": """
from types import SimpleNamespace

DETOKENIZER_MAX_STATES = 4

class LimitedCapacityDict(dict):
    def __init__(self, capacity):
        self.capacity = capacity

SEEN = []

class DetokenizerManager:
    def __init__(self, server_args, port_args):
        raise AssertionError("a server's start-up")

    def handle_batch_token_id_out(self, message):
        SEEN.append(SimpleNamespace(**vars(message), batch=not self.disable_tokenizer_batch_decode))
        return SimpleNamespace(output_strs=[f"{len(ids)}." for ids in message.decode_ids])
""",
    "sglang/srt/utils/__init__.py": "",
    "sglang/srt/utils/hf_transformers/__init__.py": "",
    "sglang/srt/utils/hf_transformers/common.py": """
def attach_additional_stop_token_ids(tokenizer):
    tokenizer.additional_stop_token_ids = None
""",
}


def install(
    folder: Path, files: dict[str, str], changed: dict[str, tuple[str, str]] | None = None
) -> dict[str, str]:
    """Write a stand-in and its metadata; the environment of a process that finds it."""
    name = next(iter(files)).partition("/")[0]
    for place, text in files.items():
        old, new = (changed or {}).get(place, ("", ""))
        assert old in text
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(old, new) if old else text)
    info = folder / f"{name}-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


@contextmanager
def in_this_process(folder: Path) -> Iterator[None]:
    """Find what ``install`` wrote, and forget it afterwards."""
    from detokbench.paths import sglang_names, vllm_names

    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_engine(name)}
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        _forget(vllm_names, sglang_names)
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if _is_engine(name)]:
            del sys.modules[name]
        sys.modules.update(kept)
        _forget(vllm_names, sglang_names)


def _is_engine(name: str) -> bool:
    return name.partition(".")[0] in {"vllm", "sglang"}


def _forget(*modules) -> None:
    for module in modules:
        module.name_of.cache_clear()
        module._tokenizers.clear()
