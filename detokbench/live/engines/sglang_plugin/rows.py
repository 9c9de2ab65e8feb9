"""A running request: one id a step, and when ids are sent."""

from __future__ import annotations

from array import array
from typing import Any

from .outputs import Output

# Ids of the prompt that go along with the first ids, for context (`INIT_INCREMENTAL_
# DETOKENIZATION_OFFSET` in sglang/srt/managers/schedule_batch.py, Req.init_incremental_detokenize).
CONTEXT_IDS = 5
# Without streaming ids go out only so often (SGLANG_FORCE_STREAM_INTERVAL).
UNSTREAMED_INTERVAL = 50


class Row:
    """The state of one request. ``advance`` is one step of it; ``taken`` what is then sent.

    at: ids made so far; sent: those of them that were sent before
    finish: None until the end, then the dict that SGLang's ``BaseFinishReason.to_json`` gives
    request: what arrived (TokenizedGenerateReqInput); sampling: its SamplingParams
    """

    __slots__ = (
        "aborted",
        "at",
        "at_end",
        "context",
        "finish",
        "ids",
        "interval",
        "logprobs",
        "number",
        "pieces",
        "prompt_tokens",
        "request",
        "rid",
        "sampling",
        "sent",
        "stats",
        "top_logprobs",
        "total",
    )

    def __init__(self, request: Any, output: Output, eos: int, interval: int, stats: Any) -> None:
        """``interval`` is the server's, which the request's own precedes; ``stats`` goes along."""
        sampling = request.sampling_params
        self.request = request
        self.rid: str = request.rid
        self.sampling = sampling
        self.stats = stats
        self.number = -1 if sampling.sampling_seed is None else sampling.sampling_seed
        self.ids = output.ids
        self.pieces = output.pieces
        wanted = sampling.max_new_tokens
        self.total = len(self.ids) if wanted is None else min(len(self.ids), max(1, wanted))
        # The last id of every output is the end-of-text id.
        self.at_end: dict[str, Any] = (
            {"type": "stop", "matched": eos}
            if wanted is None or wanted >= len(self.ids)
            else {"type": "length", "length": wanted}
        )
        prompt = request.input_ids if request.input_ids is not None else array("q")
        self.prompt_tokens = len(prompt)
        self.context = array("q", prompt[-CONTEXT_IDS:])
        self.interval = getattr(sampling, "stream_interval", None) or interval
        if not request.stream:
            self.interval = UNSTREAMED_INTERVAL
        self.logprobs = bool(request.return_logprob)
        self.top_logprobs = int(request.top_logprobs_num or 0) if self.logprobs else 0
        self.aborted = False
        self.at = 0
        self.sent = 0
        self.finish: dict[str, Any] | None = None

    def advance(self) -> bool:
        """One id more; True where something is sent in this step.

        The rule of ``_GenerationStreamAccumulator.accept``
        (sglang/srt/managers/scheduler_components/output_streamer.py).
        """
        self.at += 1
        if self.at >= self.total:
            self.finish = self.at_end
            return True
        return self.due_to_send()

    def abort(self) -> None:
        """It ends with its next id (``Req.to_finish`` in sglang/srt/managers/schedule_batch.py)."""
        self.aborted = True
        self.total = self.at + 1
        self.at_end = {
            "type": "abort",
            "message": "Aborted",
            "status_code": None,
            "err_type": None,
        }

    def due_to_send(self) -> bool:
        """Whether the ids made so far go out now, for a request that goes on."""
        if self.request.stream:
            unsent = self.at - self.sent
            return unsent >= self.interval or self.sent == 0
        return self.at % self.interval == 0

    def new_ids(self) -> array[int]:
        """The ids not sent yet; they count as sent from now on."""
        first, self.sent = self.sent, self.at
        if self.at - first == 1:
            return self.pieces[first]
        return self.ids[first : self.at]
