"""What ``tail-str`` needs before it measures: streams, stops, and counts of their decodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import msgspec

from detokbench.bench.check_streams import (
    STREAM_TOKENS,
    CheckedStream,
    StreamsByStops,
    check_streams,
    long_enough,
    stop_check,
    write_streams,
)
from detokbench.bench.plan import PreparedStops, PrepareStopsRequest, StreamCount
from detokbench.bench.stop_sets import StopSet, given_sets, synthetic_sets
from detokbench.model.hold_back import Suppression, suppression_of_stream
from detokbench.model.tail_str import Decodes, decodes_of_stream, decodes_per_step
from detokbench.stops.tail_window import TailWindow
from detokbench.vocab.special_texts import warnings_about_stops
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.streams import build_workload


def prepare_stops(request: PrepareStopsRequest, vocabulary: Vocabulary) -> PreparedStops:
    """Make the workload and the stops, and count each setting's decodes in the streams.

    Raises a usage error for stops that end every stream at once.
    """
    folder = Path(request.text_folder)
    workload = build_workload(vocabulary, request.scenario, folder, request.seed, STREAM_TOKENS)
    Path(request.workload_file).write_bytes(msgspec.msgpack.encode(workload))
    encode, decode = vocabulary.encode, vocabulary.tokenizer.decode
    given = given_sets(request.strings, request.regexes, request.given_tokens, encode)
    growth = synthetic_sets(request.growth_tokens, encode)
    chars = [
        [len(decode(output[:end])) for end in range(len(output) + 1)] for output in workload.outputs
    ]
    streams: StreamsByStops = {}
    counts: list[StreamCount] = []
    windows: dict[str, int | None] = {}
    for stops in dict.fromkeys([*given, *growth]):
        check = stop_check(stops, encode, decode)
        windows[stops.name] = _window_tokens(check.window, chars)
        streams[stops] = check_streams(workload.outputs, stops, check)
        counts += _counts(request, stops, streams[stops], chars, stops in given)
    write_streams(streams, request.workload_file)
    return PreparedStops(
        vocabulary=vocabulary.facts,
        given=given,
        growth=growth,
        windows=windows,
        counts=counts,
        scanned_chars={stops.name: _scanned_chars(stops, streams[stops]) for stops in growth},
        chars_per_id=sum(row[-1] for row in chars) / sum(map(len, workload.outputs)),
        stop_warnings=warnings_about_stops(
            vocabulary, request.strings, request.scenario.flags.skip_special_tokens
        ),
    )


def _window_tokens(window: TailWindow, chars: Sequence[Sequence[int]]) -> int | None:
    longest_output = max(map(len, chars)) - 1
    return window.base_tokens if window.base_tokens <= longest_output else None


def _scanned_chars(stops: StopSet, streams: Sequence[CheckedStream]) -> float:
    """Characters of an average prefix scan: a tail may be shorter than the stop."""
    longest = len(stops.strings[0])
    return mean(min(len(tail), longest) for stream in streams for tail in stream.tails)


def _counts(
    request: PrepareStopsRequest,
    stops: StopSet,
    streams: Sequence[CheckedStream],
    chars: Sequence[Sequence[int]],
    is_given: bool,
) -> list[StreamCount]:
    """One count a setting of a set of stops; the growth over lengths has the plainest only."""
    intervals: list[int | None] = list(request.intervals) or [None]
    settings = [(ids, k) for ids in request.ids_per_step for k in intervals] if is_given else []
    plainest = (1, 1 if request.intervals else None)
    return [
        _count(stops, streams, chars, ids_per_step, interval)
        for ids_per_step, interval in dict.fromkeys([*settings, plainest])
    ]


def _count(
    stops: StopSet,
    streams: Sequence[CheckedStream],
    chars: Sequence[Sequence[int]],
    ids_per_step: int,
    interval: int | None,
) -> StreamCount:
    lasting = long_enough(streams, stops, ids_per_step)
    streaming = interval is not None and bool(stops.strings)
    regexes, k = len(stops.regexes), interval or 1
    decodes: list[Decodes] = []
    found = Suppression()
    for stream, row in zip(streams, chars, strict=True):
        held = stream.held_at_steps(ids_per_step)
        accepted = [ids_per_step] * len(held)
        counted = decodes_of_stream(accepted, held, regexes=regexes, interval=k)
        decodes.append(counted)
        if streaming:
            found += suppression_of_stream(accepted, held, row, k)
    steps = sum(one.finish for one in decodes)
    floor = decodes_per_step(
        len(stops.strings), regexes, streaming=streaming, interval=k, ids_per_step=ids_per_step
    )
    return StreamCount(
        stop=stops.name,
        ids_per_step=ids_per_step,
        stream_interval=interval,
        finish=1,
        regex_retries=sum(one.regex_retries for one in decodes) / steps,
        prefix=sum(one.prefix for one in decodes) / steps if streaming else 0,
        floor=floor.total,
        chunks=found.chunks,
        suppressed=found.suppressed,
        longest_steps=found.longest_steps,
        longest_chars=found.longest_chars,
        streams=len(lasting),
        cut_streams=sum(len(s.ids) < len(row) - 1 for s, row in zip(streams, chars, strict=True)),
    )
