"""The bookkeeping of SGLang's detokenizer process: two windows and three offsets for each row.

How the windows become text is left to the caller, since that is all in which ``batch-decode``,
``row-decode`` and ``rust-batch`` differ.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count

from detokbench.errors import DetokbenchError
from detokbench.paths.printable import printable_prefix
from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.view import RowView

DecodeWindows = Callable[[list[list[int]], list[Flags]], list[str]]
"""Ids and flags of every row → text of every row; an empty window has empty text."""

# python/sglang/srt/managers/schedule_batch.py, ported from vLLM's constant.
CONTEXT_TOKENS = 5
MAX_STATES_VARIABLE = "SGLANG_DETOKENIZER_MAX_STATES"
DEFAULT_MAX_STATES = 1 << 16


class _DecodeState:
    """One row in the detokenizer: offsets into its ids, and into its text."""

    __slots__ = (
        "decode_ids",
        "decoded_chunks",
        "decoded_len",
        "read_offset",
        "sent",
        "surr_offset",
    )

    def __init__(self, decode_ids: list[int], read_offset: int) -> None:
        self.decode_ids = decode_ids
        self.surr_offset = 0
        self.read_offset = read_offset
        self.decoded_chunks: list[str] = []
        self.decoded_len = 0
        # Characters sent. More than decoded_len while a printable part of held text is out.
        self.sent = 0


class _Request:
    """One row in the scheduler: what its messages to the detokenizer carry."""

    __slots__ = ("context", "flags", "has_state", "read_offset")

    def __init__(self, prompt: list[int], flags: Flags) -> None:
        self.context = prompt[-CONTEXT_TOKENS:]
        self.read_offset = len(self.context)
        self.flags = flags
        self.has_state = False


class _StateTable(OrderedDict[int, _DecodeState]):
    """Holds ``capacity`` rows and drops the oldest inserted one to make room for another."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def __setitem__(self, row: int, state: _DecodeState) -> None:
        if len(self) >= self.capacity:
            self.popitem(last=False)
        super().__setitem__(row, state)


class SglangWindows:
    """Rows of SGLang's DetokenizerManager (``_decode_batch_token_id_output``, 0.5.23).

    ``states_lost`` counts rows whose state had been dropped when their next ids came: SGLang
    starts them anew without their context, and text is lost in silence (sglang#2812).
    """

    def __init__(self, size: int, max_states: int | None = None) -> None:
        """``size`` is the vocabulary's; ids outside it are read as id 0, as SGLang does."""
        self._size = size
        self._requests: dict[int, _Request] = {}
        self._states = _StateTable(max_states or _max_states_from_environment())
        self._next_row = count()
        self.states_lost = 0

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        for row, prompt, row_flags in zip(
            rows, prompts, flags_or_default(prompts, flags), strict=True
        ):
            self._requests[row] = _Request(prompt, row_flags)
        return rows

    def step(
        self, rows: Sequence[int], new_ids: Sequence[list[int]], decode: DecodeWindows
    ) -> list[str]:
        """Decode both windows of every row and return what each may send."""
        surr_texts, read_texts = self._decode_both(rows, new_ids, decode)
        states = self._states
        deltas = []
        for i, row in enumerate(rows):
            try:
                state = states[row]
            except KeyError:
                raise self._dropped_within_batch(row, len(rows)) from None
            deltas.append(_emit(state, read_texts[i][len(surr_texts[i]) :]))
        return deltas

    def end(self, row: int, decode: DecodeWindows) -> str:
        """A last message without ids: the held text goes out as it is, U+FFFD included."""
        surr_texts, read_texts = self._decode_both([row], [[]], decode)
        state = self._states.pop(row)
        del self._requests[row]
        text = "".join(state.decoded_chunks) + read_texts[0][len(surr_texts[0]) :]
        return text[state.sent :]

    def look(self, row: int, decode: DecodeWindows) -> RowView:
        """The row as its next message finds it: without a state, as the context it will bring."""
        request, state = self._requests[row], self._states.get(row)
        if state is None:
            context = () if request.has_state else tuple(self._clamped(request.context))
            state = _DecodeState(list(context), request.read_offset)
        window = state.decode_ids[state.surr_offset :]
        read = state.read_offset - state.surr_offset
        before, text = decode([window[:read], window], [request.flags] * 2)
        offsets = {
            "surr_offset": state.surr_offset,
            "read_offset": state.read_offset,
            "sent_offset": state.sent,
        }
        held = text[len(before) :][state.sent - state.decoded_len :]
        return RowView(window, offsets, held)

    def _decode_both(
        self, rows: Sequence[int], new_ids: Sequence[list[int]], decode: DecodeWindows
    ) -> tuple[list[str], list[str]]:
        surr_ids: list[list[int]] = []
        read_ids: list[list[int]] = []
        flags: list[Flags] = []
        for row, ids in zip(rows, new_ids, strict=True):
            request = self._requests[row]
            state = self._receive(row, request, ids)
            read_ids.append(state.decode_ids[state.surr_offset :])
            surr_ids.append(state.decode_ids[state.surr_offset : state.read_offset])
            flags.append(request.flags)
        return decode(surr_ids, flags), decode(read_ids, flags)

    def _receive(self, row: int, request: _Request, ids: list[int]) -> _DecodeState:
        """Add a message's ids to the row's state; the first message carries the context too."""
        state = self._states.get(row)
        if state is not None:
            state.decode_ids.extend(self._clamped(ids))
            return state
        if request.has_state:
            self.states_lost += 1
            message_ids = ids
        else:
            request.has_state = True
            message_ids = request.context + ids
        state = _DecodeState(self._clamped(message_ids), request.read_offset)
        self._states[row] = state
        return state

    def _clamped(self, ids: list[int]) -> list[int]:
        size = self._size
        return [i if 0 <= i < size else 0 for i in ids]

    def _dropped_within_batch(self, row: int, batch: int) -> DetokbenchError:
        return DetokbenchError(
            f"row {row} lost its decode state within the batch: {batch:,} rows need more than the "
            f"{self._states.capacity:,} states that the table holds; raise {MAX_STATES_VARIABLE}"
        )


def _emit(state: _DecodeState, new_text: str) -> str:
    """Commit clean text; of text that ends inside a character send only the printable prefix."""
    pending = state.sent - state.decoded_len
    if new_text and not new_text.endswith("\ufffd"):
        state.decoded_chunks.append(new_text)
        state.decoded_len += len(new_text)
        state.surr_offset = state.read_offset
        state.read_offset = len(state.decode_ids)
        state.sent = state.decoded_len
        return new_text[pending:] if pending else new_text
    printable = printable_prefix(new_text)
    state.sent = state.decoded_len + len(printable)
    return printable[pending:] if pending else printable


def _max_states_from_environment() -> int:
    text = os.environ.get(MAX_STATES_VARIABLE, str(DEFAULT_MAX_STATES))
    if not text.isdecimal() or int(text) == 0:
        raise DetokbenchError(f"{MAX_STATES_VARIABLE}: '{text}' is not a number of states")
    return int(text)


def decode_present(
    windows: list[list[int]], flags: list[Flags], decode: DecodeWindows
) -> list[str]:
    """Leave empty windows out of ``decode`` and put their empty texts back in place."""
    if all(windows):
        return decode(windows, flags)
    present = [i for i, ids in enumerate(windows) if ids]
    texts = [""] * len(windows)
    if present:
        decoded = decode([windows[i] for i in present], [flags[i] for i in present])
        for i, text in zip(present, decoded, strict=True):
            texts[i] = text
    return texts
