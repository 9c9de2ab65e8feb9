"""How many ids a path hands to the tokenizer a step, while its output grows.

Counted, not timed: a window that is never cut lets the count grow whatever the machine does. Times
are taken beside it as an illustration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from detokbench.bench.recording import RecordingVocabulary
from detokbench.errors import DetokbenchError
from detokbench.paths.decode_stream_window import DecodeStreamWindow
from detokbench.paths.protocol import PathClass
from detokbench.paths.row import PathRow
from detokbench.records.verify import Growth, GrowthClass
from detokbench.verify.kinds import Kind, representatives
from detokbench.verify.stream import DEFAULT_FLAGS
from detokbench.vocab.id_bytes import IdBytes
from detokbench.vocab.vocabulary import Vocabulary

LENGTHS = (32, 64, 128, 256)
_AROUND = 8
# Doubling the output doubles what grows straight, and leaves alone what does not grow.
_FLAT_BELOW = 1.3
_LINEAR_BELOW = 2.6
_SENTENCE = "the quick brown fox jumps over the lazy dog and "


def growing_streams(vocabulary: Vocabulary) -> dict[str, list[int]]:
    """Streams of the longest length: running text, and each kind of id over and over."""
    table: IdBytes = vocabulary.id_bytes
    longest = LENGTHS[-1] + _AROUND
    sentence = vocabulary.encode(_SENTENCE)
    kinds = representatives(table, vocabulary.encode)
    streams = {"text without a newline": (sentence * longest)[:longest]} if sentence else {}
    for kind in (Kind.SPECIAL, Kind.OPEN, Kind.MIDDLE, Kind.GENUINE, Kind.UNKNOWN):
        if kind in kinds:
            streams[f"one {kind}, repeated"] = kinds[kind][:1] * longest
    return streams


def growth_of(path_class: PathClass, vocabulary: Vocabulary) -> Iterator[Growth]:
    """How a path's work a step grows, for each stream that it survives; none of an engine's."""
    if path_class.is_engine:
        return
    for name, ids in growing_streams(vocabulary).items():
        try:
            work, is_modelled = count_work(path_class, vocabulary, ids)
            times = _times_us(path_class, vocabulary, ids)
        except (KeyboardInterrupt, ShadowDiffersError):
            raise
        except BaseException:
            continue
        means = [_mean(work[length - _AROUND : length + _AROUND]) for length in LENGTHS]
        yield Growth(
            path=path_class.name,
            vocab=vocabulary.name,
            stream=name,
            lengths=list(LENGTHS),
            ids_a_step=means,
            growth=growth_class(means),
            first_us=_middle(times[LENGTHS[0] - _AROUND : LENGTHS[0] + _AROUND]),
            last_us=_middle(times[LENGTHS[-1] - _AROUND : LENGTHS[-1] + _AROUND]),
            source="modelled" if is_modelled else "measured",
        )


def growth_class(means: Sequence[float]) -> GrowthClass:
    """Flat, linear or worse, from the work at lengths that double."""
    if means[-1] == 0 or means[-2] == 0:
        return "flat"
    ratio = means[-1] / means[-2]
    if ratio < _FLAT_BELOW:
        return "flat"
    return "linear" if ratio < _LINEAR_BELOW else "worse"


def count_work(
    path_class: PathClass, vocabulary: Vocabulary, ids: Sequence[int]
) -> tuple[list[int], bool]:
    """Ids handed to the tokenizer in each step, and whether DecodeStream's part is modelled."""
    shadows: list[_ShadowedStream] = []
    recording = _CountingVocabulary(vocabulary, shadows)
    row = PathRow(path_class(recording), [], DEFAULT_FLAGS)
    work = []
    for token_id in ids:
        recording.log.clear()
        row.step([token_id])
        hidden = sum(shadow.ids_handed for shadow in shadows)
        work.append(_ids_in(recording.log.calls) + hidden)
    row.end()
    return work, bool(shadows)


def _ids_in(calls: Sequence[Any]) -> int:
    """Ids or tokens in the arguments of the recorded decodes."""
    return sum(
        sum(map(len, call.argument))
        if call.name.endswith(("batch_decode", "decode_batch"))
        else len(call.argument)
        for call in calls
        if isinstance(call.argument, list)
    )


class ShadowDiffersError(DetokbenchError):
    """The installed DecodeStream is another than the one that the shadow stands for."""


class _CountingVocabulary(RecordingVocabulary):
    """Counts what DecodeStream decodes too, by a shadow that does what it does."""

    def __init__(self, inner: Vocabulary, shadows: list[_ShadowedStream]) -> None:
        super().__init__(inner)
        self.__dict__["shadows"] = shadows

    def decode_stream(self, ids: Sequence[int] | None, skip_special_tokens: bool) -> Any:
        inner: Vocabulary = self.__dict__["_inner"]
        shadow = _ShadowedStream(inner, ids, skip_special_tokens)
        self.__dict__["shadows"][:] = [shadow]
        return shadow


class _ShadowedStream:
    """The real DecodeStream, and beside it the shadow that says how much it decoded."""

    def __init__(
        self, inner: Vocabulary, ids: Sequence[int] | None, skip_special_tokens: bool
    ) -> None:
        assert inner.rust is not None
        self._rust = inner.rust
        self._stream = inner.decode_stream(ids, skip_special_tokens)
        self._window = DecodeStreamWindow(inner.rust, ids, skip_special_tokens)

    @property
    def ids_handed(self) -> int:
        """Ids that the last step decoded."""
        return self._window.ids_handed

    def step(self, _tokenizer: Any, token_id: int) -> str | None:
        text: str | None = self._stream.step(self._rust, token_id)
        if self._window.step(token_id) != text:
            raise ShadowDiffersError(
                "DecodeStream does not do what its model here does, so its window cannot be "
                "counted; leave out the law 'work', and report the version of tokenizers"
            )
        return text


def _times_us(path_class: PathClass, vocabulary: Vocabulary, ids: Sequence[int]) -> list[float]:
    row = PathRow(path_class(vocabulary), [], DEFAULT_FLAGS)
    times = []
    for token_id in ids:
        started = perf_counter()
        row.step([token_id])
        times.append((perf_counter() - started) * 1e6)
    row.end()
    return times


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
