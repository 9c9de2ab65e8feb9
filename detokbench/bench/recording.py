"""Which tokenizer calls a path makes: a vocabulary that notes each call and its arguments.

The calls are counted for the table and replayed on their own to time c, the cost of a round trip
without the path around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from detokbench.vocab.vocabulary import Vocabulary

STREAM_STEP = "DecodeStream.step"


@dataclass
class Call:
    """One decode: its name, its argument, its flags, and how many rows it decoded."""

    name: str
    function: Any
    argument: Any
    flags: dict[str, bool]
    rows: int


@dataclass
class CallLog:
    """The calls of one run of a path. ``decodes`` counts rows, ``lookups`` id look-ups."""

    calls: list[Call] = field(default_factory=list)
    lookups: int = 0

    @property
    def decodes(self) -> int:
        return sum(call.rows for call in self.calls)

    def clear(self) -> None:
        self.calls.clear()
        self.lookups = 0


class RecordingVocabulary(Vocabulary):
    """A vocabulary whose tokenizers write every decode and look-up into ``log``."""

    log: CallLog

    def __init__(self, inner: Vocabulary) -> None:
        log = CallLog()
        tokenizer: Any = _Recorder(inner.tokenizer, "", log)
        rust: Any = None if inner.rust is None else _Recorder(inner.rust, "Tokenizer.", log)
        super().__init__(inner.name, tokenizer, rust, inner.source)
        object.__setattr__(self, "log", log)
        object.__setattr__(self, "_inner", inner)
        self.__dict__["cached_tokenizer"] = _Recorder(inner.cached_tokenizer, "", log)

    def encode(self, text: str) -> list[int]:
        inner: Vocabulary = self.__dict__["_inner"]
        return inner.encode(text)

    @property
    def id_bytes(self) -> Any:
        inner: Vocabulary = self.__dict__["_inner"]
        return inner.id_bytes

    def decode_stream(self, ids: Sequence[int] | None, skip_special_tokens: bool) -> Any:
        inner: Vocabulary = self.__dict__["_inner"]
        return _RecordingStream(inner, inner.decode_stream(ids, skip_special_tokens), self.log)


class _Recorder:
    """Stands for a tokenizer; what it does not record it hands through."""

    def __init__(self, inner: Any, prefix: str, log: CallLog) -> None:
        self._inner = inner
        self._prefix = prefix
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __len__(self) -> int:
        return len(self._inner)

    def _note(self, name: str, argument: Any, flags: dict[str, bool], rows: int) -> Any:
        function = getattr(self._inner, name)
        self._log.calls.append(Call(self._prefix + name, function, argument, flags, rows))
        return function(argument, **flags)

    def decode(self, ids: list[int], **flags: bool) -> Any:
        return self._note("decode", list(ids), flags, 1)

    def batch_decode(self, sequences: list[list[int]], **flags: bool) -> Any:
        return self._note("batch_decode", list(sequences), flags, len(sequences))

    def decode_batch(self, sequences: list[list[int]], **flags: bool) -> Any:
        return self._note("decode_batch", list(sequences), flags, len(sequences))

    def convert_tokens_to_string(self, tokens: list[Any]) -> Any:
        return self._note("convert_tokens_to_string", list(tokens), {}, 1)

    def convert_ids_to_tokens(self, ids: list[int], skip_special_tokens: bool = False) -> Any:
        self._log.lookups += len(ids)
        return self._inner.convert_ids_to_tokens(ids, skip_special_tokens=skip_special_tokens)


class _RecordingStream:
    def __init__(self, inner: Vocabulary, stream: Any, log: CallLog) -> None:
        self._rust = inner.rust
        self._stream = stream
        self._log = log

    def step(self, _tokenizer: Any, token_id: int) -> Any:
        self._log.calls.append(Call(STREAM_STEP, self._stream, token_id, {}, 1))
        return self._stream.step(self._rust, token_id)
