"""One stream through one path, law by law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from detokbench.stops.request import StopFinish
from detokbench.verify.laws import Law
from detokbench.verify.progress import Progress, advance
from detokbench.verify.stream import Observation, Runner, Stream
from detokbench.verify.truth import Truth

REPLACEMENT = "\ufffd"
LONGEST_WAIT = 3
"""Ids that a complete character may wait for: an open neighbour lacks three bytes at most."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A law that was broken: at which number of ids a step, at which step, and how.

    ``expected`` and ``got`` are what should have been and what was sent by the end of that step.
    """

    law: Law
    ids_per_step: int | None
    step: int
    expected: str
    got: str
    expected_stop: str = ""
    got_stop: str = ""


@dataclass(slots=True)
class Judgement:
    """What one path made of one stream."""

    judged: set[Law] = field(default_factory=set)
    breaches: list[Breach] = field(default_factory=list)
    observations: dict[int | None, Observation] = field(default_factory=dict)
    longest_wait: int = 0

    @property
    def broken(self) -> set[Law]:
        return {breach.law for breach in self.breaches}


def judge(
    runner: Runner, stream: Stream, truth: Truth, step_sizes: Sequence[int | None]
) -> Judgement:
    """Stream it at each number of ids a step and compare with the truth."""
    result = Judgement()
    for size in step_sizes:
        seen = runner.run(stream, size)
        result.observations[size] = seen
        result.judged.add(Law.NO_ERROR)
        if seen.error:
            result.breaches.append(_raised(seen, truth, stream, size))
        elif stream.has_stops:
            _judge_stops(result, stream, truth, size)
        else:
            _judge_text(result, runner, stream, truth, size)
    if stream.ended and not stream.has_stops:
        _judge_sameness(result, truth)
    return result


def _raised(seen: Observation, truth: Truth, stream: Stream, size: int | None) -> Breach:
    ids = min(len(stream.output), len(seen.deltas) * (size or len(stream.output)))
    return Breach(
        Law.NO_ERROR,
        size,
        len(seen.deltas) + 1,
        truth.certain[: truth.lengths[ids]],
        "".join(seen.deltas),
    )


def _judge_text(
    result: Judgement, runner: Runner, stream: Stream, truth: Truth, size: int | None
) -> None:
    seen = result.observations[size]
    progress = Progress(stream, truth, seen, size)
    result.judged |= {Law.APPEND_ONLY, Law.BYTES, Law.REPLACEMENT}

    def breach(law: Law, step: int | None = None) -> None:
        at = progress.first_wrong if step is None else step
        result.breaches.append(Breach(law, size, at, progress.expected_by(at), progress.got_by(at)))

    false = progress.first_false
    if false is not None:
        breach(Law.APPEND_ONLY, false)
    text = seen.text
    if stream.ended and not truth.text.startswith(text) and not _is_within(truth.text, text):
        breach(Law.BYTES)
    if text.count(REPLACEMENT) > truth.text.count(REPLACEMENT):
        breach(Law.REPLACEMENT)
    if stream.ended:
        result.judged.add(Law.COMPLETE)
        if _is_cut_short(text, truth.text):
            breach(Law.COMPLETE, len(seen.deltas) + 1)
    if size == 1:
        _judge_single_ids(result, runner, truth, progress, breach)


def _judge_single_ids(
    result: Judgement,
    runner: Runner,
    truth: Truth,
    progress: Progress,
    breach: Callable[..., None],
) -> None:
    """The laws that are judged at one id a step only."""
    text = progress.seen.text
    result.judged.add(Law.HOLD)
    result.longest_wait = progress.longest_wait
    if result.longest_wait > LONGEST_WAIT:
        breach(Law.HOLD, progress.longest_wait_step)
    if truth.prompt_text:
        result.judged.add(Law.PROMPT)
        extra = text[: len(text) - len(truth.text)]
        looks_like_it = text.endswith(truth.text) and truth.prompt_text.endswith(extra)
        if extra and looks_like_it and extra not in _without_prompt(runner, progress.stream):
            breach(Law.PROMPT)
    if truth.one_shot is not None and progress.stream.ended:
        result.judged.add(Law.ONE_SHOT)
        if text != truth.one_shot:
            end = len(progress.seen.deltas) + 1
            result.breaches.append(Breach(Law.ONE_SHOT, 1, end, truth.one_shot, text))


def _without_prompt(runner: Runner, stream: Stream) -> str:
    """What the path makes of the output alone: what is false there too is not the prompt's."""
    return runner.run(replace(stream, prompt=()), 1).text


def _judge_sameness(result: Judgement, truth: Truth) -> None:
    """The same text for every number of ids a step; before the end each may hold another part."""
    texts = {size: seen.text for size, seen in result.observations.items() if not seen.error}
    if len(texts) < 2:
        return
    result.judged.add(Law.IDS_PER_STEP)
    first = next(iter(texts.values()))
    for size, text in texts.items():
        if text != first:
            steps = len(result.observations[size].deltas)
            result.breaches.append(Breach(Law.IDS_PER_STEP, size, steps + 1, truth.text, text))
            return


def _judge_stops(result: Judgement, stream: Stream, truth: Truth, size: int | None) -> None:
    seen = result.observations[size]
    right = truth.stopped
    result.judged.add(Law.STOPS)
    same_finish = (seen.finish is None) == (right.finish is None)
    if same_finish and seen.finish is not None and right.finish is not None:
        same_finish = (seen.finish.matched, seen.finish.kept_ids) == (
            right.finish.matched,
            right.finish.kept_ids,
        )
    text = seen.text
    expected = right.text
    if not stream.ended and right.finish is None:
        # What may still become a stop is rightly held; only what is false can be judged.
        expected = text if expected.startswith(text) else expected
    if text == expected and same_finish:
        return
    step = _first_wrong_step(seen, expected)
    result.breaches.append(
        Breach(
            Law.STOPS,
            size,
            step,
            expected,
            text,
            _finish_words(right.finish),
            _finish_words(seen.finish),
        )
    )


def _finish_words(finish: StopFinish | None) -> str:
    """How a stream ended, in a few words."""
    if finish is None:
        return "no stop"
    ids = "id" if finish.kept_ids == 1 else "ids"
    return f"stopped by {finish.matched!r}, {finish.kept_ids} {ids} kept"


def _first_wrong_step(seen: Observation, expected: str) -> int:
    sent = 0
    for number, delta in enumerate(seen.deltas, 1):
        if not expected.startswith(delta, sent):
            return number
        sent += len(delta)
    return len(seen.deltas) + 1


def _is_within(part: str, whole: str) -> bool:
    """Whether the characters of ``part`` are in ``whole``, in this order."""
    return advance(whole, part, 0, len(whole)) >= 0


def _is_cut_short(text: str, right: str) -> bool:
    """Whether the end of the right text did not come."""
    if not right or text.startswith(right):
        return False  # whatever came after it is false, not missing
    return right.startswith(text) or not text.endswith(right[-1])
