"""``slow``: vLLM's SlowIncrementalDetokenizer, the two-window offsets in Python.

``slow-uncached`` is the same without vLLM's cache of tokenizer properties, to show what that
cache is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.view import RowView
from detokbench.paths.vllm_row import VllmRow
from detokbench.stops.request import StopStyle
from detokbench.vocab.vocabulary import TokenizerLike, Vocabulary

# vllm/tokenizers/detokenizer_utils.py: five tokens of context, "an arbitrary value that should
# work for all tokenizers", and two more of the prompt's tail for special tokens that fall away.
CONTEXT_TOKENS = 5
PROMPT_TAIL_TOKENS = CONTEXT_TOKENS + 2


class SlowPath:
    """Decode a window of tokens with and without the new one; the difference is the delta."""

    name = "slow"
    whose = "vLLM SlowIncrementalDetokenizer"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "characters"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = self._choose_tokenizer(vocabulary)
        self._rows: dict[int, _SlowRow] = {}
        self._next_row = count()

    @staticmethod
    def _choose_tokenizer(vocabulary: Vocabulary) -> TokenizerLike:
        return vocabulary.cached_tokenizer

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        return None

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        rows = [next(self._next_row) for _ in prompts]
        for row, prompt, row_flags in zip(
            rows, prompts, flags_or_default(prompts, flags), strict=True
        ):
            self._rows[row] = _SlowRow(self._tokenizer, prompt, row_flags)
        return rows

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        deltas = []
        for row, ids in zip(rows, new_ids, strict=True):
            state = self._rows[row]
            state.update(ids)
            deltas.append(state.next_delta())
        return deltas

    def end(self, row: int) -> str:
        # A held character is never sent: the latch has no way out at the end of a stream.
        return self._rows.pop(row).next_delta()

    def look(self, row: int) -> RowView:
        return self._rows[row].look()


class UncachedSlowPath(SlowPath):
    """``slow`` on the tokenizer as transformers gives it."""

    name = "slow-uncached"
    whose = "the slow path without vLLM's caching proxy"

    @staticmethod
    def _choose_tokenizer(vocabulary: Vocabulary) -> TokenizerLike:
        return vocabulary.tokenizer

    @staticmethod
    def why_not(vocabulary: Vocabulary) -> str | None:
        if vocabulary.cached_tokenizer is vocabulary.tokenizer:
            return "vLLM puts no caching proxy around this tokenizer"
        return None


class _SlowRow(VllmRow):
    """The offsets of one request, in tokens.

    ``prefix_offset`` is the left edge of both windows, ``read_offset`` the frontier of what has
    been emitted. A step that holds leaves both where they are, one that commits moves each a hop.
    """

    def __init__(self, tokenizer: TokenizerLike, prompt: list[int], flags: Flags) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._skip = flags.skip_special_tokens
        self._spaces = flags.spaces_between_special_tokens
        self.token_ids.extend(prompt)
        self._prompt_len = len(prompt)
        self._first_id = max(len(prompt) - PROMPT_TAIL_TOKENS, 0)
        self._tokens = _text_or_empty(
            tokenizer.convert_ids_to_tokens(
                prompt[-PROMPT_TAIL_TOKENS:], skip_special_tokens=self._skip
            )
        )
        self.read_offset = len(self._tokens)
        self.prefix_offset = max(self.read_offset - CONTEXT_TOKENS, 0)

    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self._prompt_len

    def decode_next(self, token_id: int) -> str:
        tokens = self._tokens
        tokens.extend(self._new_tokens(token_id))
        prefix_text = self._join(tokens[self.prefix_offset : self.read_offset])
        new_text = self._join(tokens[self.prefix_offset :])
        if len(new_text) <= len(prefix_text) or new_text.endswith("\ufffd"):
            return ""  # hold: nothing new, or the last character may be incomplete
        self.prefix_offset, self.read_offset = self.read_offset, len(tokens)
        return new_text[len(prefix_text) :]

    def look(self) -> RowView:
        tokens = self._tokens
        before = self._join(tokens[self.prefix_offset : self.read_offset])
        held = self._join(tokens[self.prefix_offset :])[len(before) :]
        offsets = {"prefix_offset": self.prefix_offset, "read_offset": self.read_offset}
        return RowView(self._window_ids(), offsets, held)

    def _window_ids(self) -> list[int]:
        """The ids behind the tokens from ``prefix_offset`` on; skipped ids have no token."""
        left = len(self._tokens) - self.prefix_offset
        ids: list[int] = []
        for token_id in reversed(self.token_ids[self._first_id :]):
            if len(ids) == left:
                break
            if self._new_tokens(token_id):
                ids.append(token_id)
        return ids[::-1]

    def _new_tokens(self, token_id: int) -> list[Any]:
        """The token of an id as a list: empty when it is skipped, "" when out of range."""
        if not 0 <= token_id < len(self._tokenizer):
            return [""]
        tokens = self._tokenizer.convert_ids_to_tokens([token_id], skip_special_tokens=self._skip)
        return _text_or_empty(tokens)

    def _join(self, tokens: list[Any]) -> str:
        tokenizer = self._tokenizer
        if tokenizer.is_fast or not tokenizer.get_added_vocab():
            return tokenizer.convert_tokens_to_string(tokens)
        return join_around_added_tokens(tokenizer, tokens, self._skip, self._spaces)


def join_around_added_tokens(
    tokenizer: TokenizerLike, tokens: list[Any], skip_special_tokens: bool, spaces: bool
) -> str:
    """Text of ``tokens`` on a Python tokenizer with an added vocabulary.

    Its ``convert_tokens_to_string`` does not know added tokens, so the runs between them are
    joined apart, and with ``spaces`` a space is put between the parts.
    """
    added = set(tokenizer.get_added_vocab())
    skipped = set(tokenizer.all_special_tokens) if skip_special_tokens else set()
    parts: list[str] = []
    run: list[Any] = []
    for token in tokens:
        if token in skipped:
            continue
        if token not in added:
            run.append(token)
            continue
        if run:
            parts.append(tokenizer.convert_tokens_to_string(run))
            run = []
        parts.append(token)
    if run:
        parts.append(tokenizer.convert_tokens_to_string(run))
    return (" " if spaces else "").join(parts)


def _text_or_empty(tokens: list[Any]) -> list[Any]:
    """Ids without a token give None, which no tokenizer can join."""
    return ["" if token is None else token for token in tokens]
