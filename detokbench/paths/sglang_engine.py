"""``sglang`` and ``sglang-rows``: the DetokenizerManager of the SGLang installed beside us.

The class is SGLang's own, unmodified (sglang/srt/managers/detokenizer_manager.py). A step is one
``handle_batch_token_id_out`` on a BatchTokenIDOutput. What the scheduler does for it is done here:
a row's first message carries the last ids of its prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from detokbench.paths.installed_engine import why_absent
from detokbench.paths.probe_engine import why_not_of
from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.sglang_names import (
    batch_message,
    detokenizer_manager,
    name_of,
    tokenizer_of,
)
from detokbench.paths.sglang_stops import SchedulerStops
from detokbench.stops.request import StopRequest, StopStream, StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class _Row:
    """What the scheduler's messages say of one row."""

    __slots__ = ("context", "flags", "is_known", "name")

    def __init__(self, name: str, context: list[int], flags: Flags) -> None:
        self.name = name
        self.context = context
        self.flags = flags
        self.is_known = False


class SglangPath:
    """The installed SGLang's DetokenizerManager, with batch decode as by default."""

    name = "sglang"
    whose = "SGLang, as installed"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "tokens"
    is_engine = True
    batch_decode = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = tokenizer_of(vocabulary)
        self._manager = detokenizer_manager(self._tokenizer, vocabulary.size, self.batch_decode)
        self._context = name_of(
            "srt.managers.schedule_batch", "INIT_INCREMENTAL_DETOKENIZATION_OFFSET"
        )
        self._rows: dict[int, _Row] = {}
        self._next_row = count()
        # The message of the last step, since most steps serve the same rows again.
        self._served: list[int] = []
        self._message: Any = None

    @classmethod
    def why_not(cls, vocabulary: Vocabulary) -> str | None:
        if _is_python_sentencepiece(vocabulary) and why_absent("sglang") is None:
            return "SGLang loads SentencePiece as a Rust tokenizer: take mistral-spm-fast"
        return why_not_of("sglang", cls, vocabulary)

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        for row, prompt, row_flags in zip(
            rows, prompts, flags_or_default(prompts, flags), strict=True
        ):
            self._rows[row] = _Row(str(row), prompt[-self._context :], row_flags)
        return rows

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        if rows != self._served:
            self._serve(rows)
        message = self._message
        message.decode_ids = new_ids
        if self._unknown:
            message.decode_ids = self._with_contexts(new_ids)
        texts: list[str] = self._manager.handle_batch_token_id_out(message).output_strs
        return texts

    def _serve(self, rows: Sequence[int]) -> None:
        states = [self._rows[row] for row in rows]
        self._message = message_for(
            [state.name for state in states],
            [len(state.context) for state in states],
            [state.flags for state in states],
        )
        self._served = list(rows)
        self._unknown = [(place, state) for place, state in enumerate(states) if not state.is_known]

    def _with_contexts(self, new_ids: Sequence[list[int]]) -> list[list[int]]:
        ids = list(new_ids)
        for place, state in self._unknown:
            ids[place] = state.context + list(ids[place])
            state.is_known = True
        self._unknown = []
        return ids

    def end(self, row: int) -> str:
        """A last message without ids, as for a request at its length."""
        state = self._rows.pop(row)
        self._served = []
        message = message_for([state.name], [len(state.context)], [state.flags])
        message.decode_ids = [[] if state.is_known else state.context]
        message.finished_reasons = [{"type": "length", "length": 0}]
        text: str = self._manager.handle_batch_token_id_out(message).output_strs[0]
        return text

    def open_with_stops(self, prompt: list[int], flags: Flags, stops: StopRequest) -> StopStream:
        """A stream whose stops SGLang's own request looks for, as its scheduler lets it."""
        name = f"with-stops-{next(self._next_row)}"
        return SchedulerStops(self._manager, name, prompt, flags, stops)


class SglangRowsPath(SglangPath):
    """The installed SGLang's DetokenizerManager with batch decode disabled."""

    name = "sglang-rows"
    whose = "SGLang, as installed, with --disable-tokenizer-batch-decode"
    batch_decode = False


def message_for(names: list[str], read_offsets: list[int], flags: Sequence[Flags]) -> Any:
    """A message for these rows, without ids yet and with nothing finished."""
    return batch_message(
        rids=names,
        finished_reasons=[None] * len(names),
        decoded_texts=[""] * len(names),
        decode_ids=[],
        read_offsets=read_offsets,
        skip_special_tokens=[row.skip_special_tokens for row in flags],
        spaces_between_special_tokens=[row.spaces_between_special_tokens for row in flags],
        no_stop_trim=[False] * len(names),
    )


def _is_python_sentencepiece(vocabulary: Vocabulary) -> bool:
    """SGLang holds mistral-common's wrapper for Tekken only (``is_bare_tekken_checkpoint``)."""
    return getattr(vocabulary.tokenizer, "is_tekken", None) is False
