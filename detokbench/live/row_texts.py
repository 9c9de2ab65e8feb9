"""The detokenising part of each topology: rows of ids in, text out, state for every open request.

``OneByOne`` is vLLM's: each request has its own detokenizer and stop strings are looked for in its
text (v1/engine/detokenizer.py). ``AsBatch`` is SGLang's detokenizer process: one step of the path
for all rows of a message, and a matched stop is trimmed from the text
(managers/detokenizer_manager.py, ``trim_matched_stop``).
"""

from __future__ import annotations

from detokbench.live.messages import RowOutput, RowText
from detokbench.paths.protocol import DetokPath, Flags
from detokbench.paths.row import PathRow
from detokbench.stops.characters import CharacterStops
from detokbench.stops.request import StopRequest

_FLAGS = Flags()


class OneByOne:
    """One row of the path for each request; ids go in one by one, as far as the path does so."""

    def __init__(self, path: DetokPath, stop: tuple[str, ...]) -> None:
        self._path = path
        self._stops = StopRequest(strings=stop) if stop else None
        self._open: dict[int, PathRow | CharacterStops] = {}

    def __len__(self) -> int:
        """Requests with a state here."""
        return len(self._open)

    def take(self, row: RowOutput) -> tuple[str, str | None] | None:
        """The text that may go out and how the request ended, if it did; None if it is not open.

        A request that is not open was ended by a stop here, and the engine has not heard of it.
        """
        if row.prompt is not None:
            self._add(row.request, row.prompt)
        stream = self._open.get(row.request)
        if stream is None:
            return None
        text = stream.step(row.new_ids) if row.new_ids else ""
        finish = row.finish
        if self._stops is not None and stream.finish is not None:  # type: ignore[union-attr]
            finish = "stop"
        if finish is not None:
            del self._open[row.request]
            text += stream.end()
        return text, finish

    def _add(self, request: int, prompt: list[int]) -> None:
        row = PathRow(self._path, prompt, _FLAGS)
        self._open[request] = row if self._stops is None else CharacterStops(self._stops, row)


class AsBatch:
    """One step of the path for all rows that a message brings."""

    def __init__(self, path: DetokPath, stop: tuple[str, ...]) -> None:
        self._path = path
        self._has_stops = bool(stop)
        self._rows: dict[int, int] = {}
        self._sent: dict[int, list[str]] = {}

    def __len__(self) -> int:
        """Requests with a state here."""
        return len(self._rows)

    def take(self, rows: list[RowOutput]) -> list[RowText]:
        """The text of each row of a message."""
        new = [row for row in rows if row.prompt is not None]
        if new:
            numbers = self._path.open([row.prompt or [] for row in new], [_FLAGS] * len(new))
            self._rows.update(zip((row.request for row in new), numbers, strict=True))
        with_ids = rows if all(row.new_ids for row in rows) else [r for r in rows if r.new_ids]
        texts = self._step(with_ids)
        if len(with_ids) < len(rows):
            given = iter(texts)
            texts = [next(given) if row.new_ids else "" for row in rows]
        return [self._row(row, text) for row, text in zip(rows, texts, strict=True)]

    def _step(self, rows: list[RowOutput]) -> list[str]:
        if not rows:
            return []
        numbers = self._rows
        return self._path.step(
            [numbers[row.request] for row in rows], [row.new_ids for row in rows]
        )

    def _row(self, row: RowOutput, text: str) -> RowText:
        if row.finish is not None:
            text += self._path.end(self._rows.pop(row.request))
        if self._has_stops:
            text = self._trimmed(row, text)
        return RowText(row.request, text, len(row.new_ids), row.finish)

    def _trimmed(self, row: RowOutput, text: str) -> str:
        """The text cut at the first place of the stop; nothing that was sent is taken back."""
        sent = self._sent.setdefault(row.request, [])
        if row.finish is None:
            sent.append(text)
            return text
        del self._sent[row.request]
        if row.matched is None:
            return text
        before = "".join(sent)
        place = (before + text).find(row.matched)
        return text if place < 0 else text[: max(place - len(before), 0)]
