"""vLLM's objects of a front end, made as its server makes them but for the engine behind it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .names import Names

MODEL_NAME = "detokbench"


class Engine:
    """Configuration, tokenizer, output processors, serving object and app.

    ``plain`` and ``counting`` are OutputProcessors without and with statistics.
    """

    def __init__(self, names: Names, model: str) -> None:
        """``model`` is the folder that the server was given."""
        self.names = names
        parser = names.make_arg_parser(names.FlexibleArgumentParser())
        self.args = parser.parse_args(["--model", model, "--served-model-name", MODEL_NAME])
        given = names.AsyncEngineArgs.from_cli_args(self.args)
        self.config = given.create_engine_config(usage_context=names.UsageContext.OPENAI_API_SERVER)
        renderer = names.renderer_from_config(self.config)
        interval = self.config.scheduler_config.stream_interval
        self.plain, self.counting = (
            names.OutputProcessor(renderer.tokenizer, log_stats=counts, stream_interval=interval)
            for counts in (False, True)
        )
        self.loggers = names.StatLoggerManager(
            vllm_config=self.config, engine_idxs=[0], custom_stat_loggers=[]
        )
        # What AsyncLLM is to the serving object, where no request is begun.
        client = SimpleNamespace(
            model_config=self.config.model_config,
            vllm_config=self.config,
            renderer=renderer,
            input_processor=None,
        )
        self.serving = names.OpenAIServingCompletion(
            client, None, online_renderer=None, request_logger=None
        )
        self.app = names.build_app(self.args, ("generate",), self.config.model_config)
        self.app.state.args = self.args

    def request(self, request_id: str, *, detokenize: bool, stop: list[str]) -> Any:
        """An EngineCoreRequest that streams deltas, as of a plain completion."""
        names = self.names
        params = names.SamplingParams(
            temperature=0.0,
            stop=stop or None,
            max_tokens=1 << 20,
            ignore_eos=True,
            detokenize=detokenize,
            output_kind=names.RequestOutputKind.DELTA,
        )
        return names.EngineCoreRequest(
            request_id=request_id,
            prompt_token_ids=list(range(100, 116)),
            mm_features=None,
            sampling_params=params,
            pooling_params=None,
            arrival_time=0.0,
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
            external_req_id=request_id,
        )
