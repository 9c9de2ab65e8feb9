"""Cases through every path: the right values that their files give, and what came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from detokbench.records.verify import CaseResult, Verdict
from detokbench.stops.request import StopRequest
from detokbench.verify.stream import STEP_SIZES, Observation, Runner, Stream, one_line, run_rows
from detokbench.vocab.special_texts import warnings_about_stops
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case, CaseRow

Fault = tuple[str, str]
"""What a case expects and what came instead, both in words."""


def step_sizes_of(case: Case) -> tuple[int | None, ...]:
    """The numbers of ids a step that a case asks for."""
    if not case.step_sizes:
        return STEP_SIZES
    return tuple(size if isinstance(size, int) else None for size in case.step_sizes)


def stream_of(row: CaseRow, origin: str) -> Stream:
    """A row of a case as a stream."""
    stops = row.stops
    if row.end == "stop-id" and row.output_ids:
        ids = stops.stop_ids | {row.output_ids[-1]}
        stops = StopRequest(stops.strings, stops.regexes, ids, stops.min_tokens, stops.keep_stop)
    return Stream(
        tuple(row.prompt_ids), tuple(row.output_ids), row.flags, stops, row.end != "open", origin
    )


def check_case(case: Case, runner: Runner, vocabulary: Vocabulary) -> CaseResult:
    """One case through one path, at each number of ids a step."""
    rows = case.rows(vocabulary.encode)
    streams = [stream_of(row, f"case {case.name}") for row in rows]
    verdict: Verdict = "pass"
    expected = got = ""
    if not all(map(runner.can_judge, streams)):
        verdict = "n/a"
    else:
        fault = next(_faults(case, rows, streams, runner, vocabulary), None)
        if fault is not None:
            expected, got = fault
            verdict = "error" if got.startswith("raised") else "differs"
    return CaseResult(
        case=case.name,
        title=case.title,
        report=case.report,
        vocab=vocabulary.name,
        path=runner.name,
        verdict=verdict,
        expected_to_differ=runner.name in case.differ,
        expected=expected,
        got=got,
    )


def warnings_about(case: Case, vocabulary: Vocabulary) -> list[str]:
    """A line for each stop string that cannot match, where the case does not say so itself."""
    lines = [
        f"case {case.name}: {warning}"
        for row in case.rows(vocabulary.encode)
        if row.expect is None or row.expect.stop is not False
        for warning in warnings_about_stops(
            vocabulary, row.stops.strings, row.flags.skip_special_tokens
        )
    ]
    return list(dict.fromkeys(lines))


def size_to_show(case: Case, row: CaseRow, stream: Stream, runner: Runner) -> int:
    """The first number of ids a step of the case at which a path is wrong; else just the first."""
    sizes = step_sizes_of(case)
    for size in sizes if runner.can_judge(stream) else ():
        if any(_faults_of(row, stream, runner.fresh().run(stream, size), size)):
            return size or len(stream.output)
    return sizes[0] or len(stream.output)


def _faults(
    case: Case,
    rows: Sequence[CaseRow],
    streams: Sequence[Stream],
    runner: Runner,
    vocabulary: Vocabulary,
) -> Iterator[Fault]:
    """What is not as the case expects, smallest numbers of ids a step first."""
    for size in step_sizes_of(case):
        steps = "" if size == 1 else f"{size or 'all'} ids a step: "
        for number, (row, stream) in enumerate(zip(rows, streams, strict=True), 1):
            where = f"row {number}: " if len(rows) > 1 else ""
            seen = runner.fresh().run(stream, size)
            for expected, got in _faults_of(row, stream, seen, size):
                yield expected, got if seen.error else f"{steps}{where}{got}"
        if len(rows) > 1 and not any(stream.has_stops for stream in streams):
            yield from _faults_together(rows, streams, runner, vocabulary, size)


def _faults_together(
    rows: Sequence[CaseRow],
    streams: Sequence[Stream],
    runner: Runner,
    vocabulary: Vocabulary,
    size: int | None,
) -> Iterator[Fault]:
    """The same rows as one batch."""
    try:
        path = runner.path_class(vocabulary)
        texts = run_rows(path, streams, size, range(len(streams)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        yield "no error", f"raised {one_line(error)} in one batch"
        return
    for number, (row, text) in enumerate(zip(rows, texts, strict=True), 1):
        expected = row.expect.text if row.expect else None
        if row.end != "open" and expected is not None and text != expected:
            yield repr(expected), f"in one batch: row {number}: {text!r}"


def _faults_of(
    row: CaseRow, stream: Stream, seen: Observation, size: int | None
) -> Iterator[Fault]:
    expect = row.expect
    if seen.error:
        right = None if expect is None else expect.text
        yield "no error" if right is None else repr(right), f"raised {seen.error}"
        return
    if expect is None:
        return
    if expect.text is not None and seen.text != expect.text:
        yield repr(expect.text), repr(seen.text)
    if expect.deltas is not None and size == 1 and not _same_deltas(seen, expect.deltas):
        yield f"deltas {list(expect.deltas)!r}", f"deltas {[*seen.deltas, seen.ending]!r}"
    if expect.stop is not None and stream.has_stops:
        matched: Any = False if seen.finish is None else seen.finish.matched
        expected, got = _stop_words(expect.stop), _stop_words(matched)
        if expected != got:  # in words, since a stop id of 0 equals False
            yield expected, got
    if expect.kept_ids is not None:
        kept = len(stream.output) if seen.finish is None else seen.finish.kept_ids
        if tuple(stream.output[:kept]) != tuple(expect.kept_ids):
            yield f"{len(expect.kept_ids)} ids kept", f"{kept} ids kept"


def _stop_words(matched: Any) -> str:
    return "no stop" if matched is False else f"stopped by {matched!r}"


def _same_deltas(seen: Observation, expected: Sequence[str]) -> bool:
    """The case's deltas may leave out steps after a stop, and the end where it gives nothing."""
    sent = [*seen.deltas, seen.ending]
    longest = max(len(sent), len(expected))
    pad = [""] * longest
    return [*sent, *pad][:longest] == [*expected, *pad][:longest]
