"""``BatchTokenIDOutput``: what a step sends to the detokenizer, or to the Rust server.

What the scheduler puts where: ``_GenerationStreamAccumulator`` in
sglang/srt/managers/scheduler_components/output_streamer.py.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from .fields import known_fields
from .rows import Row

Rows = Sequence[Row]

# Values that are invented: no model runs here. One id of a vocabulary of 100k by chance.
LOGPROB = -11.5
_TOP_STEP = 0.25

# The same for as long as the rows of a batch are the same.
STEADY: dict[str, Callable[[Rows], Any]] = {
    "rids": lambda rows: [row.rid for row in rows],
    "http_worker_ipcs": lambda rows: [row.request.http_worker_ipc for row in rows],
    "decoded_texts": lambda rows: [""] * len(rows),
    "read_offsets": lambda rows: [len(row.context) for row in rows],
    "skip_special_tokens": lambda rows: [row.sampling.skip_special_tokens for row in rows],
    "spaces_between_special_tokens": lambda rows: [
        row.sampling.spaces_between_special_tokens for row in rows
    ],
    "no_stop_trim": lambda rows: [row.sampling.no_stop_trim for row in rows],
    "prompt_tokens": lambda rows: [row.prompt_tokens for row in rows],
    "reasoning_tokens": lambda rows: [0] * len(rows),
    "cached_tokens": lambda rows: [0] * len(rows),
    "cached_tokens_details": lambda rows: [None] * len(rows),
    "retraction_counts": lambda rows: [0] * len(rows),
    "dp_ranks": lambda rows: [None] * len(rows),
    "image_tokens": lambda rows: [0] * len(rows),
    "audio_tokens": lambda rows: [0] * len(rows),
    "video_tokens": lambda rows: [0] * len(rows),
    "time_stats": lambda rows: [row.stats for row in rows],
}

# Lists that are empty, or None, for a model without drafts, images, experts and hidden states.
_EMPTY = (
    "spec_verify_ct",
    "spec_accepted_tokens",
    "spec_accepted_drafts",
    "spec_num_correct_drafts",
    "spec_num_block_accept_tokens",
    "spec_num_cap_tokens",
    "spec_acceptance_histogram",
    "spec_correct_drafts_histogram",
    "spec_cap_lens_histogram",
)
_NONE = (
    "output_token_entropy_val",
    "output_token_sampling_mask",
    "output_token_sampling_logprobs",
    "output_hidden_states",
    "routed_experts",
    "indexer_topk",
    "placeholder_tokens_idx",
    "placeholder_tokens_val",
    "token_steps",
    "customized_info",
    "beam_search_output",
    "weight_versions",
    "input_top_logprobs_val_flat",
    "input_top_logprobs_idx_flat",
    "input_top_logprobs_flat_null_prefix",
)
_LOGPROBS = tuple(
    f"{side}_{kind}_{what}"
    for side in ("input", "output")
    for kind in ("token_logprobs", "top_logprobs", "token_ids_logprobs")
    for what in ("val", "idx")
)
_MOVING = ("finished_reasons", "decode_ids", "output_ids", "completion_tokens")
KNOWN = (*STEADY, *_EMPTY, *_NONE, *_LOGPROBS, *_MOVING)
NEEDED = ("rids", "finished_reasons", "output_ids")
# The Rust server detokenizes by itself: what only the Python processes read stays empty there
# (`rust_server_mode` of the class above).
_PYTHON_ONLY = (
    "http_worker_ipcs",
    "decoded_texts",
    "decode_ids",
    "read_offsets",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "no_stop_trim",
    "completion_tokens",
    "cached_tokens_details",
    "time_stats",
)


class BatchBuilder:
    """Builds the message of a step from the rows that send in it."""

    def __init__(
        self, message_class: Any, rust: bool = False, wrap: Callable[[Any], Any] = lambda v: v
    ) -> None:
        """``wrap`` makes an opaque field fit for the wire (SGLang's ``wrap_as_pickle``).

        Raises UnknownFieldsError where the class requires fields that are not known here.
        """
        self._class = message_class
        self._wrap = wrap
        fields = known_fields(message_class, KNOWN, NEEDED)
        emptied = set(_PYTHON_ONLY if rust else ())
        self._moving = set(fields) - emptied
        self._steady = [name for name in fields if name in STEADY and name not in emptied]
        self._always: dict[str, Any] = {name: [] for name in fields if name in _EMPTY}
        self._always |= {name: None for name in fields if name in (*_NONE, *_LOGPROBS)}
        self._always |= {name: [] for name in fields if name in emptied and name != "time_stats"}
        self._rows: list[Row] = []
        self._held: dict[str, Any] = {}

    def build(self, rows: list[Row]) -> Any:
        """The message for these rows; their new ids count as sent from now on."""
        if rows != self._rows:
            self._rows = rows
            self._held = {name: STEADY[name](rows) for name in self._steady}
            if "time_stats" in self._held:
                self._held["time_stats"] = self._wrap(self._held["time_stats"])
        begun = [row.sent for row in rows]
        ids = [row.new_ids() for row in rows]
        values = {
            **self._always,
            **self._held,
            "finished_reasons": [row.finish for row in rows],
            "output_ids": ids,
        }
        if "completion_tokens" in self._moving:
            values["completion_tokens"] = [row.at for row in rows]
        if "decode_ids" in self._moving:
            values["decode_ids"] = _with_context(rows, begun, ids)
        if any(row.logprobs for row in rows):
            values |= {k: v for k, v in logprobs(rows, ids).items() if k in self._moving}
        return self._class(**values)


def _with_context(rows: Rows, begun: list[int], ids: list[array[int]]) -> list[array[int]]:
    """Ids to decode: a row's first ones after the last of its prompt, which give them context."""
    if all(begun):
        return ids
    return [
        new if sent else row.context + new for row, sent, new in zip(rows, begun, ids, strict=True)
    ]


def logprobs(rows: Rows, ids: list[array[int]]) -> dict[str, list[Any]]:
    """Columns of log-probabilities, [] for a row that wants none; only what is generated has any.

    The most likely ids are invented too: the id itself and those after it.
    """
    columns: dict[str, list[Any]] = {name: [[] for _ in rows] for name in _LOGPROBS}
    for at, (row, new) in enumerate(zip(rows, ids, strict=True)):
        if not row.logprobs:
            continue
        columns["output_token_logprobs_val"][at] = [LOGPROB] * len(new)
        columns["output_token_logprobs_idx"][at] = list(new)
        if row.top_logprobs:
            ranks = range(row.top_logprobs)
            tops = [LOGPROB - _TOP_STEP * rank for rank in ranks]
            columns["output_top_logprobs_val"][at] = [tops for _ in new]
            columns["output_top_logprobs_idx"][at] = [
                [max(0, token - rank) for rank in ranks] for token in new
            ]
        else:
            columns["output_top_logprobs_val"][at] = [[] for _ in new]
            columns["output_top_logprobs_idx"][at] = [[] for _ in new]
    return columns
