"""``fast``: vLLM's FastIncrementalDetokenizer, one DecodeStream for each row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from detokbench.paths.decode_stream_window import INVALID_PREFIX, DecodeStreamWindow
from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.view import RowView
from detokbench.paths.vllm_row import VllmRow
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import Vocabulary


class FastPath:
    """One ``DecodeStream.step`` a token; the stream is primed with the whole prompt.

    ``bad_ids`` counts ids that DecodeStream refuses (vllm#21951: swallowed, the stream goes on);
    ``rebuilt_streams`` counts recoveries from 'Invalid prefix' (vllm#17448: the stream is thrown
    away with its context, and whatever it still held is lost).
    """

    name = "fast"
    whose = "vLLM FastIncrementalDetokenizer"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "characters"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._added_tokens = _added_tokens(vocabulary)
        self._rows: dict[int, _FastRow] = {}
        self._next_row = count()
        self.bad_ids = 0
        self.rebuilt_streams = 0

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        return None if vocabulary.is_rust else "DecodeStream needs a Rust tokenizer"

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        for row, prompt, row_flags in zip(
            rows, prompts, flags_or_default(prompts, flags), strict=True
        ):
            self._rows[row] = _FastRow(
                self, self._vocabulary, self._added_tokens, prompt, row_flags
            )
        return rows

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        deltas = []
        for row, ids in zip(rows, new_ids, strict=True):
            state = self._rows[row]
            state.update(ids)
            deltas.append(state.next_delta())
        return deltas

    def end(self, row: int) -> str:
        # DecodeStream has no flush: what it still holds is never sent.
        return self._rows.pop(row).next_delta()

    def look(self, row: int) -> RowView:
        return self._rows[row].look()


class _FastRow(VllmRow):
    def __init__(
        self,
        path: FastPath,
        vocabulary: Vocabulary,
        added_tokens: dict[int, str],
        prompt: list[int],
        flags: Flags,
    ) -> None:
        super().__init__()
        self._path = path
        self._open_stream = vocabulary.decode_stream
        self._rust = vocabulary.rust
        self._skip = flags.skip_special_tokens
        self._stream = self._open_stream(prompt, self._skip)
        self._added_tokens = added_tokens
        # vLLM takes out spaces between added tokens only where both flags ask for it.
        self._spaces = self._skip or flags.spaces_between_special_tokens or not added_tokens
        self._last_was_added = False
        self._prompt = prompt
        self._model: DecodeStreamWindow | None = None  # made when somebody looks
        self._modelled_ids = 0

    def decode_next(self, token_id: int) -> str:
        text = self._protected_step(token_id)
        if not self._spaces:
            added = self._added_tokens.get(token_id)
            if added is not None and self._last_was_added:
                text = added
            self._last_was_added = added is not None
        return text or ""

    def _protected_step(self, token_id: int) -> str | None:
        assert self._rust is not None
        try:
            return self._stream.step(self._rust, token_id)
        except (OverflowError, TypeError):
            self._path.bad_ids += 1
            return None
        except Exception as error:
            if not str(error).startswith(INVALID_PREFIX):
                raise
            self._path.rebuilt_streams += 1
            self._stream = self._open_stream(None, self._skip)
            return self._stream.step(self._rust, token_id)

    def look(self) -> RowView:
        """DecodeStream hides its state: this is that of a model, fed the same ids."""
        assert self._rust is not None
        model = self._model or DecodeStreamWindow(self._rust, self._prompt, self._skip)
        for token_id in self.token_ids[self._modelled_ids :]:
            model = model.follow(token_id)
        self._model, self._modelled_ids = model, len(self.token_ids)
        offsets = {"ids": len(model.ids), "prefix_index": model.prefix_index}
        return RowView(tuple(model.ids), offsets, model.held, is_modelled=True)


def _added_tokens(vocabulary: Vocabulary) -> dict[int, str]:
    if vocabulary.rust is None:
        return {}
    return {i: token.content for i, token in vocabulary.rust.get_added_tokens_decoder().items()}
