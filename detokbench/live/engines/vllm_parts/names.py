"""What is taken from the installed vLLM, each name with its module; what is missing is named."""

from __future__ import annotations

import importlib
from typing import Any

NAMES = {
    "AsyncEngineArgs": "vllm.engine.arg_utils",
    "AsyncLLM": "vllm.v1.engine.async_llm",
    "CompletionRequest": "vllm.entrypoints.openai.completion.protocol",
    "EngineCoreOutputs": "vllm.v1.engine",
    "EngineCoreRequest": "vllm.v1.engine",
    "FlexibleArgumentParser": "vllm.utils.argparse_utils",
    "IterationStats": "vllm.v1.metrics.stats",
    "MsgpackDecoder": "vllm.v1.serial_utils",
    "NoSignalServer": "vllm.entrypoints.launchers.launcher",
    "OpenAIServingCompletion": "vllm.entrypoints.openai.completion.serving",
    "OutputProcessor": "vllm.v1.engine.output_processor",
    "RequestOutputCollector": "vllm.v1.engine.output_processor",
    "RequestOutputKind": "vllm.sampling_params",
    "RequestResponseMetadata": "vllm.entrypoints.generate.base.protocol",
    "SamplingParams": "vllm.sampling_params",
    "StatLoggerManager": "vllm.v1.metrics.loggers",
    "UsageContext": "vllm.usage.usage_lib",
    "build_app": "vllm.entrypoints.launchers.app",
    "freeze_gc_heap": "vllm.utils.gc_utils",
    "make_arg_parser": "vllm.entrypoints.common.cli_args",
    "make_zmq_socket": "vllm.utils.network_utils",
    "merge_async_iterators": "vllm.utils.async_utils",
    "renderer_from_config": "vllm.renderers.registry",
}


class MissingError(RuntimeError):
    """The installed vLLM does not have what a rung is built upon."""


class Names:
    """vLLM's names as attributes. Raises MissingError that lists all that are not there."""

    def __init__(self) -> None:
        missing = []
        for name, module in NAMES.items():
            try:
                setattr(self, name, getattr(importlib.import_module(module), name))
            except (ImportError, AttributeError) as error:
                missing.append(f"{module}.{name} ({' '.join(str(error).split())})")
        if missing:
            version = importlib.import_module("vllm").__version__
            raise MissingError(f"vLLM {version} has no " + "; no ".join(missing))

    def __getattr__(self, name: str) -> Any:  # only asked for what is not there
        raise AttributeError(name)
