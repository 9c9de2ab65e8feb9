"""Judging: streams of one part of a run through all paths of one vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from detokbench.records.verify import Difference, Seen
from detokbench.verify.corpus import (
    beginnings,
    cut_texts,
    orders_of_kinds,
    text_ids,
    texts_with_stops,
    whole_texts,
)
from detokbench.verify.find import storable, stream_facts
from detokbench.verify.fuzz import Fuzz
from detokbench.verify.judge import judge
from detokbench.verify.kinds import shape
from detokbench.verify.laws import Law
from detokbench.verify.rows import MANY_ROWS, RowBreach, check_neighbours, check_number, mixed_rows
from detokbench.verify.stream import STEP_SIZES, Runner, Stream
from detokbench.verify.tally import Tally
from detokbench.verify.tasks import Bench, Judged, JudgeTask, runners_for, vocabulary_for
from detokbench.verify.truth import Truth
from detokbench.verify.work import growth_of
from detokbench.vocab.vocabulary import Vocabulary

_WHOLE_SIZES = (1,)
_CUT_SIZES = (1,)
_KIND_SIZES = (1, 2, None)
_STOP_SIZES = (1, 3, None)
_LONG = 64


def do_judge(bench: Bench, task: JudgeTask) -> Judged:
    """Run a JudgeTask."""
    vocabulary = vocabulary_for(bench, task.vocabulary)
    runners = runners_for(bench, vocabulary)
    if task.part == "rows":
        return _judge_rows(runners, vocabulary, task.many_rows)
    if task.part == "work":
        return _judge_work(runners, vocabulary)
    tally = Tally()
    for stream, sizes in _streams(bench, task, vocabulary):
        judge_all(tally, runners, stream, sizes, vocabulary)
    tally.steps = sum(runner.steps for runner in runners.values())
    return Judged(tally)


def judge_all(
    tally: Tally,
    runners: dict[str, Runner],
    stream: Stream,
    sizes: Sequence[int | None],
    vocabulary: Vocabulary,
) -> None:
    """Put one stream through every path that can be judged by it."""
    truth = Truth(stream, vocabulary)
    kinds = ""
    for name, runner in runners.items():
        if not runner.can_judge(stream) or stream.stops.regexes:
            continue  # the truth knows no regexes: what they should do stands in cases only
        result = judge(runner, stream, truth, sizes)
        if result.breaches and not kinds:
            kinds = _shape_of(stream, vocabulary)
        tally.add(name, stream, result, kinds)
    tally.streams += 1


def _shape_of(stream: Stream, vocabulary: Vocabulary) -> str:
    """Long streams go by where they come from, since they hold every kind of id."""
    if len(stream.prompt) + len(stream.output) > _LONG:
        return stream.origin.partition(",")[0]
    return shape(vocabulary.id_bytes, stream.prompt, stream.output)


def _streams(
    bench: Bench, task: JudgeTask, vocabulary: Vocabulary
) -> Iterator[tuple[Stream, Sequence[int | None]]]:
    """The streams of a task's part, each with the numbers of ids a step to run it at."""
    if task.part == "fuzz":
        fuzz = Fuzz(vocabulary, bench.seed)
        for number in task.numbers:
            yield fuzz.stream(number), (1, fuzz.ids_per_step(number))
        return
    if task.part == "kinds":
        orders = orders_of_kinds(vocabulary.id_bytes, vocabulary, bench.seed)
        yield from _at(orders, _KIND_SIZES)
        return
    texts = text_ids(vocabulary)
    yield from chain(
        _at(whole_texts(texts), _WHOLE_SIZES),
        _at(beginnings(texts), STEP_SIZES),
        _at(cut_texts(texts), _CUT_SIZES),
        _at(texts_with_stops(texts, vocabulary), _STOP_SIZES),
    )


def _at(
    streams: Iterable[Stream], sizes: Sequence[int | None]
) -> Iterator[tuple[Stream, Sequence[int | None]]]:
    return ((stream, sizes) for stream in streams)


def _judge_rows(runners: dict[str, Runner], vocabulary: Vocabulary, many_rows: bool) -> Judged:
    answer = Judged()
    seen: list[tuple[RowBreach, Seen]] = []
    mixed = mixed_rows(vocabulary, text_ids(vocabulary))
    for name, runner in runners.items():
        checks = [check_neighbours(runner.path_class, vocabulary, mixed)]
        checks += [check_number(runner.path_class, vocabulary)] if many_rows else []
        breaches = [breach for check in checks for breach in check.breaches]
        answer.tally.judged[name, Law.ROWS] = sum(check.judged for check in checks)
        answer.tally.broken[name, Law.ROWS] = len(breaches)
        seen += [(breach, _seen_in(name, breach)) for breach in breaches[:1]]
    answer.differences = _merged(seen, vocabulary)
    return answer


def _judge_work(runners: dict[str, Runner], vocabulary: Vocabulary) -> Judged:
    answer = Judged()
    for name, runner in runners.items():
        grown = list(growth_of(runner.path_class, vocabulary))
        answer.growth += grown
        answer.tally.judged[name, Law.WORK] = len(grown)
        answer.tally.broken[name, Law.WORK] = sum(g.growth != "flat" for g in grown)
    return answer


def _seen_in(path: str, breach: RowBreach) -> Seen:
    return Seen(
        path=path,
        laws=[str(Law.ROWS)],
        step=len(breach.stream.output) + 1,
        expected=storable(breach.expected),
        got=storable(breach.got),
        text=storable(breach.got),
        error=breach.error,
    )


def _merged(seen: Sequence[tuple[RowBreach, Seen]], vocabulary: Vocabulary) -> list[Difference]:
    """A difference for each row and number of rows, with all paths that got it wrong."""
    found: dict[tuple[Stream, int], list[tuple[RowBreach, Seen]]] = {}
    for breach, one in seen:
        found.setdefault((breach.stream, breach.rows), []).append((breach, one))
    return [_rows_differ(group, vocabulary) for group in found.values()]


def _rows_differ(group: Sequence[tuple[RowBreach, Seen]], vocabulary: Vocabulary) -> Difference:
    breach, first = group[0]
    facts = stream_facts(vocabulary.name, breach.stream, 1)
    facts.rows = breach.rows
    table = vocabulary.id_bytes
    return Difference(
        input=facts,
        pieces=[repr(table.pieces[i]) for i in breach.stream.output],
        prompt_pieces=[repr(table.pieces[i]) for i in breach.stream.prompt],
        right=storable(breach.expected),
        seen=[one for _, one in group],
        origin=f"{breach.rows:,} rows open, some left idle" if breach.rows >= MANY_ROWS else "rows",
        command=f"detokbench verify {first.path} --vocab {vocabulary.name} --laws rows",
    )
