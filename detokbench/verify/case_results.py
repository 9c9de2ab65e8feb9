"""Cases through every path: the right values that their files give, and what came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from detokbench.records.verify import CaseResult, Verdict
from detokbench.stops.request import StopRequest
from detokbench.verify.stream import STEP_SIZES, Observation, Runner, Stream, one_line, run_rows
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.cases import Case, CaseRow


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
    got = ""
    if not all(map(runner.can_judge, streams)):
        verdict = "n/a"
    else:
        got = next(_faults(case, rows, streams, runner, vocabulary), "")
        verdict = "error" if got.startswith("raised") else "differs" if got else "pass"
    return CaseResult(
        case=case.name,
        title=case.title,
        report=case.report,
        vocab=vocabulary.name,
        path=runner.name,
        verdict=verdict,
        expected_to_differ=runner.name in case.differ,
        expected=_expected(rows) if got else "",
        got=got,
    )


def _expected(rows: Sequence[CaseRow]) -> str:
    """The right text of the first row that the case gives one for."""
    return next((row.expect.text for row in rows if row.expect and row.expect.text), "")


def _faults(
    case: Case,
    rows: Sequence[CaseRow],
    streams: Sequence[Stream],
    runner: Runner,
    vocabulary: Vocabulary,
) -> Iterator[str]:
    """What is not as the case expects, in words, smallest numbers of ids a step first."""
    for size in step_sizes_of(case):
        steps = "" if size == 1 else f"{size or 'all'} ids a step: "
        for number, (row, stream) in enumerate(zip(rows, streams, strict=True), 1):
            where = f"row {number}: " if len(rows) > 1 else ""
            seen = runner.fresh().run(stream, size)
            for fault in _faults_of(row, stream, seen, size):
                yield f"{fault}" if fault.startswith("raised") else f"{steps}{where}{fault}"
        if len(rows) > 1 and not any(stream.has_stops for stream in streams):
            yield from _faults_together(rows, streams, runner, vocabulary, size)


def _faults_together(
    rows: Sequence[CaseRow],
    streams: Sequence[Stream],
    runner: Runner,
    vocabulary: Vocabulary,
    size: int | None,
) -> Iterator[str]:
    """The same rows as one batch."""
    try:
        path = runner.path_class(vocabulary)
        texts = run_rows(path, streams, size, range(len(streams)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        yield f"raised {one_line(error)} in one batch"
        return
    for number, (row, text) in enumerate(zip(rows, texts, strict=True), 1):
        expected = row.expect.text if row.expect else None
        if row.end != "open" and expected is not None and text != expected:
            yield f"in one batch: row {number}: {text!r}"


def _faults_of(row: CaseRow, stream: Stream, seen: Observation, size: int | None) -> Iterator[str]:
    if seen.error:
        yield f"raised {seen.error}"
        return
    expect = row.expect
    if expect is None:
        return
    if expect.text is not None and seen.text != expect.text:
        yield repr(seen.text)
    if expect.deltas is not None and size == 1 and not _same_deltas(seen, expect.deltas):
        yield f"deltas {[*seen.deltas, seen.ending]!r}"
    if expect.stop is not None and stream.has_stops:
        matched: Any = False if seen.finish is None else seen.finish.matched
        if matched != expect.stop:
            yield f"stopped by {matched!r}" if matched is not False else "no stop"
    if expect.kept_ids is not None:
        kept = len(stream.output) if seen.finish is None else seen.finish.kept_ids
        if tuple(stream.output[:kept]) != tuple(expect.kept_ids):
            yield f"{kept} ids kept"


def _same_deltas(seen: Observation, expected: Sequence[str]) -> bool:
    """The case's deltas may leave out steps after a stop, and the end where it gives nothing."""
    sent = [*seen.deltas, seen.ending]
    longest = max(len(sent), len(expected))
    pad = [""] * longest
    return [*sent, *pad][:longest] == [*expected, *pad][:longest]
