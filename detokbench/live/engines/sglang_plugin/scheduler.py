"""What SGLang takes for its scheduler: a class with the few members that it calls.

Who calls them: ``run_scheduler_process`` in sglang/srt/managers/scheduler.py, and for the Rust
server ``RustServer.launch`` and ``_build_server_args`` in sglang/srt/rust_server.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import FOLDER_VARIABLE, NOTES_FILE, WORKLOAD_VARIABLE
from .batch import BatchBuilder
from .clock import StepClock, wake_sharply
from .engine import Engine
from .fields import built
from .outputs import Outputs
from .rows import Row
from .stops import StopCheck, StopRow, has_stop_strings
from .wire import ControlSocket, RustServer, Sockets

_FIRST_PACE_NS = 20_000_000
_MANY_TOKENS = 1 << 24
logger = logging.getLogger(__name__)


class EngineScheduler:
    """In place of ``Scheduler``: no model, no memory, a clock."""

    def __init__(self, server_args: Any, port_args: Any, *_: Any, **__: Any) -> None:
        """Earlier versions hand over the ranks of a larger engine, too; ours is alone."""
        begun = time.perf_counter()
        folder = Path(os.environ[FOLDER_VARIABLE])
        self.server_args = server_args
        self.model_config = _module("configs.model_config").ModelConfig.from_server_args(
            server_args
        )
        self.tokenizer = _tokenizer(server_args)
        self.processor = None
        self.page_size = 1
        self.max_total_num_tokens = _MANY_TOKENS
        self.max_req_input_len = self.model_config.context_len - 1
        # For `run_scheduler_process`, when the event loop has ended.
        self._shutdown_fpm: Callable[[], None] = lambda: None
        self.metrics_reporter = SimpleNamespace(_shutdown_fpm=self._shutdown_fpm)
        self.async_d2h_worker = None
        self.gracefully_exit = False
        # For the Rust server.
        self.load_snapshot_writer = None
        self.kv_events_publisher = SimpleNamespace(local_kv_event_sources=lambda block: [])

        self._messages = _module("managers.io_struct")
        rust = _rust_server_wanted()
        self._outputs = Outputs.read(Path(os.environ[WORKLOAD_VARIABLE]))
        self._batches = BatchBuilder(
            self._messages.BatchTokenIDOutput,
            rust=rust,
            wrap=getattr(self._messages, "wrap_as_pickle", lambda value: value),
        )
        self._stops = StopCheck(
            _module("managers.schedule_batch").Req, self.tokenizer, self.model_config.vocab_size
        )
        self._stats_class = _time_stats_class()
        self._engine = Engine(
            StepClock(_FIRST_PACE_NS, time.perf_counter_ns()),
            interval=int(getattr(server_args, "stream_interval", 1) or 1),
            # With the Rust server this process holds its threads, too.
            cpu_ns=time.thread_time_ns if rust else time.process_time_ns,
        )
        self._wire = self._open_wire(port_args, rust)
        self._control = ControlSocket(folder, self._engine.answer)
        self._wire.also_wake_for(self._control.socket)
        (folder / NOTES_FILE).write_text(json.dumps({"stop_check_missing": self._stops.missing}))
        self.startup_time = {"scheduler_e2e": time.perf_counter() - begun}

    def _open_wire(self, port_args: Any, rust: bool) -> Sockets | RustServer:
        if rust:
            server = _module("rust_server.server").RustServer.launch(self)
            return RustServer(server)
        return Sockets(port_args, self._messages)

    def rust_server_tokenizer_path(self) -> str:
        path: str = _resolved(self.server_args).tokenizer_path
        return path

    def get_init_info(self) -> dict[str, Any]:
        """What the parent process waits for."""
        return {
            "status": "ready",
            "max_total_num_tokens": self.max_total_num_tokens,
            "max_req_input_len": self.max_req_input_len,
            "startup_time": self.startup_time,
            "hicache_object_layout": None,
        }

    def run_event_loop(self) -> None:
        """One step after the other, at its time, until the supervisor says stop."""
        engine, clock = self._engine, self._engine.clock
        wake_sharply()
        gc.collect()
        gc.freeze()
        gc.disable()  # a step must not wait for a collection; nothing here makes cycles
        clock.pace(clock.step_ns, time.perf_counter_ns())
        while not engine.stopping:
            self._listen()
            rows = engine.step(time.perf_counter_ns())
            send = self._wire.prepared(self._batches.build(rows)) if rows else None
            clock.emitted(time.perf_counter_ns())
            if send is not None:
                send()

    def _listen(self) -> None:
        """Take what comes until the next step is due; at least look once."""
        while True:
            self._take_requests()
            self._control.answer_all()
            left = self._engine.clock.due() - time.perf_counter_ns()
            if left <= 0 or self._engine.stopping:
                return
            self._wire.wait(left)

    def _take_requests(self) -> None:
        for request in self._wire.requests():
            for one in getattr(request, "batch", None) or (request,):
                self._take(one)

    def _take(self, request: Any) -> None:
        messages = self._messages
        if isinstance(request, messages.TokenizedGenerateReqInput):
            self._engine.admit(self._row(request))
        elif isinstance(request, messages.AbortReq):
            self._engine.abort(request.rid or "", request.abort_all)
        else:
            self._answer_other(request)

    def _row(self, request: Any) -> Row:
        if hasattr(request, "unwrap_pickle_fields"):
            request.unwrap_pickle_fields()
        stats = None
        if self._stats_class is not None:
            stats = self._stats_class.new_from_obj(request.time_stats)
        if request.sampling_params.max_new_tokens is None:
            request.sampling_params.max_new_tokens = _MANY_TOKENS
        output = self._outputs.of(request.sampling_params.sampling_seed)
        rest = (request, output, self._outputs.eos, self._engine.interval, stats)
        if has_stop_strings(request.sampling_params) and not self._stops.missing:
            return StopRow(*rest, self._stops.own_request)
        return Row(*rest)

    def _answer_other(self, request: Any) -> None:
        """Other questions are answered with what their answers need; a few get none."""
        kind = type(request).__name__
        answer_class = getattr(self._messages, f"{kind.removesuffix('Input')}Output", None)
        if answer_class is None:
            logger.info("detokbench: no answer to %s", kind)
            return
        values: dict[str, Any] = {
            "rid": getattr(request, "rid", None),
            "success": True,
            "message": "",
            "internal_state": {},
            "updated": True,
            "server_args": {},
        }
        self._wire.reply(request, built(answer_class, values))


def _module(name: str) -> Any:
    return importlib.import_module(f"sglang.srt.{name}")


def _resolved(server_args: Any) -> Any:
    """The arguments with their defaults worked out, where this version keeps those apart."""
    try:
        return _module("arg_groups.overrides").resolving_view(server_args)
    except (ImportError, AttributeError):
        return server_args


def _tokenizer(server_args: Any) -> Any:
    """SGLang's own tokenizer, as its scheduler loads it; the stop check decodes with it."""
    args = _resolved(server_args)
    if args.skip_tokenizer_init:
        return None
    return _module("utils.hf_transformers_utils").get_tokenizer(
        args.tokenizer_path,
        tokenizer_mode=args.tokenizer_mode,
        trust_remote_code=args.trust_remote_code,
    )


def _time_stats_class() -> Any:
    """Times go along with every row, and the front end unpacks them: it must be the real class."""
    try:
        return _module("observability.req_time_stats").SchedulerReqTimeStats
    except (ImportError, AttributeError):
        return None


def _rust_server_wanted() -> bool:
    try:
        return bool(_module("environ").envs.SGLANG_RUST_SERVER.get())
    except (ImportError, AttributeError):
        return False
