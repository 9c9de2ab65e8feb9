"""The right text of a stream, as it becomes certain, and the right end of one with stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from detokbench.stops.request import StopFinish, StopRequest
from detokbench.verify.stream import Stream
from detokbench.vocab.id_bytes import IdBytes
from detokbench.vocab.reference import ReferenceStream, piece_of, reference_text
from detokbench.vocab.vocabulary import Vocabulary


@dataclass(frozen=True)
class StopTruth:
    """What a stream with stops has to give."""

    text: str
    finish: StopFinish | None


class Truth:
    """What the bytes of a stream's ids say, whatever any path makes of them."""

    def __init__(self, stream: Stream, vocabulary: Vocabulary) -> None:
        """Raises UnsupportedFamilyError where no table of bytes stands for the vocabulary."""
        self._stream = stream
        self._vocabulary = vocabulary
        self._table: IdBytes = vocabulary.id_bytes
        skip = stream.flags.skip_special_tokens
        reference = ReferenceStream(self._table, stream.prompt, skip)
        certain: list[str] = []
        self.lengths = [0]
        """Characters that are certain after each number of ids."""
        for token_id in stream.output:
            text = reference.step([token_id])
            certain.append(text)
            self.lengths.append(self.lengths[-1] + len(text))
        self.certain = "".join(certain)
        self.flushed = reference.end()
        """U+FFFD for a character that the output leaves open."""

    @property
    def text(self) -> str:
        """All that is due: with the end of an ended stream, without it of one that goes on."""
        return self.certain + self.flushed if self._stream.ended else self.certain

    @cached_property
    def prompt_text(self) -> str:
        """The text of the prompt, an open character at its end left out."""
        return ReferenceStream(self._table, (), self._stream.flags.skip_special_tokens).step(
            self._stream.prompt
        )

    @cached_property
    def one_shot(self) -> str | None:
        """What one decode of all ids gives; None where the text is not well-formed.

        With a prompt: what it adds to a decode of the prompt. Special tokens that are kept make
        it None too: some tokenizers decode what lies between them apart.
        """
        stream = self._stream
        skip = stream.flags.skip_special_tokens
        ids = [*stream.prompt, *stream.output]
        if not (self._is_well_formed(stream.prompt) and self._is_well_formed(stream.output)):
            return None
        if not skip and not self._table.special_ids.isdisjoint(ids):
            return None
        before = self._vocabulary.raw_decode(stream.prompt, skip) if stream.prompt else ""
        whole = self._vocabulary.raw_decode(ids, skip) if ids else ""
        return whole[len(before) :] if whole.startswith(before) else None

    def _is_well_formed(self, ids: Sequence[object]) -> bool:
        """Whether these are ids, and every run of them between special tokens is whole text."""
        special = self._table.special_ids
        try:
            for is_special, run in groupby(ids, lambda token_id: token_id in special):
                pieces = [piece_of(self._table, token_id) for token_id in run]
                if None in pieces:
                    return False
                if not is_special:
                    b"".join(piece for piece in pieces if piece).decode()
        except (UnicodeDecodeError, TypeError):
            return False
        return True

    @cached_property
    def stopped(self) -> StopTruth:
        """The right end of a stream with stop strings and stop ids, by plain search."""
        stops = self._stream.stops
        last = first_stop_id(self._stream.output, stops)
        ids = len(self._stream.output) if last is None else last + int(stops.keep_stop)
        text = self.text if last is None else self._text_of(ids)
        found = self._first_match(text, stops)
        if found is not None:
            cut = found.end if stops.keep_stop else found.begin
            return StopTruth(text[:cut], found)
        if last is None:
            return StopTruth(text, None)
        return StopTruth(text, StopFinish(self._stream.output[last], last + 1))

    def _text_of(self, ids: int) -> str:
        """The text of so many ids, with U+FFFD for a character that they leave open."""
        stream = self._stream
        skip = stream.flags.skip_special_tokens
        return reference_text(self._table, stream.prompt, stream.output[:ids], skip)

    def _first_match(self, text: str, stops: StopRequest) -> StopFinish | None:
        """The match that ends first, after the text of the first ``min_tokens`` ids."""
        if len(self._stream.output) <= stops.min_tokens:
            return None
        after = self.lengths[stops.min_tokens]
        best: tuple[int, str] | None = None
        for string in stops.strings:
            begin = text.find(string, max(0, after + 1 - len(string)))
            if begin >= 0 and (best is None or begin + len(string) < best[0]):
                best = (begin + len(string), string)
        if best is None:
            return None
        end, string = best
        return StopFinish(string, self._ids_for(end), end - len(string), end)

    def _ids_for(self, end: int) -> int:
        """Ids that make so many characters certain; all of them for what only the end gives."""
        count = next((n for n, length in enumerate(self.lengths) if length >= end), None)
        return len(self._stream.output) if count is None else count


def first_stop_id(output: Sequence[object], stops: StopRequest) -> int | None:
    """The position of the stop id that ends an output, none among the first ``min_tokens``."""
    if not stops.stop_ids:
        return None
    for position, token_id in enumerate(output):
        if position >= stops.min_tokens and token_id in stops.stop_ids:
            return position
    return None
