"""From streams that broke laws to differences worth reading: shrunk, merged, each shown once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from detokbench.records.verify import Difference, Seen, StreamFacts
from detokbench.verify.judge import Breach, Judgement, judge
from detokbench.verify.kinds import Kind, odd_kinds, representatives
from detokbench.verify.laws import Law
from detokbench.verify.show import trace_command
from detokbench.verify.shrink import Shrinker
from detokbench.verify.stream import Observation, Runner, Stream
from detokbench.verify.tally import Example, Key, Tally
from detokbench.verify.truth import Truth
from detokbench.vocab.reference import piece_of
from detokbench.vocab.vocabulary import Vocabulary


class Finder:
    """Shrinks and describes what went wrong on one vocabulary."""

    def __init__(self, vocabulary: Vocabulary, runners: dict[str, Runner]) -> None:
        self._vocabulary = vocabulary
        self._runners = runners
        kinds = representatives(vocabulary.id_bytes, vocabulary.encode)
        self._plain = [
            ids[0] for kind in (Kind.WORD, Kind.SPACED) for ids in [kinds.get(kind)] if ids
        ]

    def differences(self, tally: Tally, laws: Collection[Law]) -> list[Difference]:
        """A difference for each example that those before it do not show already."""
        found: dict[Any, Difference] = {}
        shown: set[tuple[Stream, Key]] = set()
        for key, examples in tally.examples.items():
            if key[1] not in laws:
                continue
            for example in sorted(examples.values(), key=lambda e: e.size):
                if (example.stream, key) in shown:
                    continue
                small, size = self._shrink(key, example)
                sizes = self._shown_sizes(key, small, size)
                identity = (small, *sizes)
                if identity not in found:
                    found[identity] = self.describe(small, *sizes, example.stream.origin)
                for seen in found[identity].seen:
                    shown |= {(example.stream, (seen.path, Law(law))) for law in seen.laws}
        return list(found.values())

    def _shrink(self, key: Key, example: Example) -> tuple[Stream, int | None]:
        path, law = key
        runner = self._runners[path].fresh()

        def breaks(stream: Stream, ids_per_step: int | None) -> bool:
            truth = Truth(stream, self._vocabulary)
            result = judge(runner, stream, truth, _sizes_for(law, ids_per_step))
            return law in result.broken

        if not breaks(example.stream, example.ids_per_step):
            return example.stream, example.ids_per_step  # only beside what it served before
        shrinker = Shrinker(breaks, self._plain)
        return shrinker.shrink(example.stream, example.ids_per_step, example.position)

    def _shown_sizes(
        self, key: Key, stream: Stream, size: int | None
    ) -> tuple[int | None, int | None]:
        """The number of ids a step to show it at, where the text is wrong, and the other one."""
        path, law = key
        if law is not Law.IDS_PER_STEP or size == 1:
            return size, 1
        text = self._runners[path].fresh().run(stream, size).text
        return (size, 1) if text != Truth(stream, self._vocabulary).text else (1, size)

    def describe(
        self, stream: Stream, ids_per_step: int | None, beside: int | None, origin: str
    ) -> Difference:
        """What every path makes of a stream; paths that keep all laws are left out.

        The law of ids a step is judged by ``ids_per_step`` and ``beside``.
        """
        truth = Truth(stream, self._vocabulary)
        sizes = tuple(dict.fromkeys((beside, ids_per_step)))
        seen = []
        for name, runner in self._runners.items():
            if not runner.can_judge(stream):
                continue
            result = judge(runner.fresh(), stream, truth, sizes)
            breaches = _breaches_at(ids_per_step, result, truth)
            if breaches:
                seen.append(_seen(name, breaches, result.observations[ids_per_step]))
        facts = stream_facts(self._vocabulary.name, stream, ids_per_step)
        all_ids = (*stream.prompt, *stream.output)
        right = truth.stopped.text if stream.has_stops else truth.text
        return Difference(
            input=facts,
            pieces=self._pieces(stream.output),
            prompt_pieces=self._pieces(stream.prompt),
            kinds=list(map(str, odd_kinds(self._vocabulary.id_bytes, all_ids))),
            right=right,
            seen=seen,
            origin=origin,
            command=trace_command(facts, self._shown_path(seen)),
        )

    def _shown_path(self, seen: Sequence[Seen]) -> str:
        """The path to show it with: one that should be right, if any of those is wrong."""
        names = [one.path for one in seen]
        right = [n for n in names if not self._runners[n].path_class.expected_to_fail]
        return next(iter([*right, *names]), "")

    def _pieces(self, ids: Sequence[Any]) -> list[str]:
        pieces = (piece_of(self._vocabulary.id_bytes, token_id) for token_id in ids)
        return ["no id" if piece is None else repr(piece) for piece in pieces]


def _sizes_for(law: Law, ids_per_step: int | None) -> tuple[int | None, ...]:
    """One id a step too, where a law compares numbers of ids a step."""
    return (1, ids_per_step) if law is Law.IDS_PER_STEP else (ids_per_step,)


def _breaches_at(ids_per_step: int | None, result: Judgement, truth: Truth) -> list[Breach]:
    """What went wrong at this number of ids a step, by law.

    Where two numbers give two texts, that is held against the one whose text is wrong.
    """
    is_wrong = result.observations[ids_per_step].text != truth.text
    found = [
        breach
        for breach in result.breaches
        if (is_wrong if breach.law is Law.IDS_PER_STEP else breach.ids_per_step == ids_per_step)
    ]
    return sorted(found, key=lambda breach: list(Law).index(breach.law))


def _seen(path: str, breaches: Sequence[Breach], observation: Observation) -> Seen:
    """What one path made of it; the step is that of the first breach, of two the first law's."""
    first = min(breaches, key=lambda b: (b.law is Law.IDS_PER_STEP, b.step))
    return Seen(
        path=path,
        laws=list(dict.fromkeys(str(breach.law) for breach in breaches)),
        step=first.step,
        expected=first.expected,
        got=storable(first.got),
        expected_stop=first.expected_stop,
        got_stop=first.got_stop,
        text=storable(observation.text),
        error=observation.error,
        counted=observation.counted,
    )


def storable(text: str) -> str:
    """A text as JSON can hold it: a lone surrogate, which no encoding has, as its number."""
    return text.encode("utf-8", "backslashreplace").decode()


def stream_facts(vocab: str, stream: Stream, ids_per_step: int | None) -> StreamFacts:
    """A stream as records hold it."""
    return StreamFacts(
        vocab=vocab,
        prompt=[_storable(token_id) for token_id in stream.prompt],
        output=[_storable(token_id) for token_id in stream.output],
        ids_per_step=ids_per_step,
        skip_special_tokens=stream.flags.skip_special_tokens,
        spaces_between_special_tokens=stream.flags.spaces_between_special_tokens,
        stop=list(stream.stops.strings),
        stop_ids=sorted(stream.stops.stop_ids),
        min_tokens=stream.stops.min_tokens,
        keep_stop=stream.stops.keep_stop,
        ended=stream.ended,
    )


def _storable(token_id: Any) -> Any:
    """JSON numbers beyond 64 bits cannot be read back: they go as text."""
    fits = not isinstance(token_id, int) or -(1 << 63) <= token_id < 1 << 64
    return token_id if fits else str(token_id)
