"""Output streams as the stop checks of SGLang's scheduler see them: their tails, step by step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from detokbench.bench.stop_sets import StopSet
from detokbench.errors import usage_error
from detokbench.stops.finish_check import StopCheck, first_contained
from detokbench.stops.prefix_check import may_become_stop
from detokbench.stops.tail_window import Decode, Encode, TailWindow

STREAMS = 32
"""Requests that are measured together, each with a text of its own."""
STREAM_TOKENS = 256
"""Ids of each output: so many that the windows of long stops are full most of the time."""


def stop_check(stops: StopSet, encode: Encode, decode: Decode) -> StopCheck:
    """The finish check of a request with these stops; its window is the prefix check's too."""
    window = TailWindow.for_stops(stops.strings, stops.regexes, encode)
    return StopCheck(stops.strings, stops.regexes, window, decode)


def finds_any(tail: str, strings: Sequence[str], regexes: Sequence[str]) -> bool:
    """The finish check's scan: whether a stop string, or what a regex matches, is in a tail."""
    return first_contained(tail, strings) is not None or any(
        re.search(regex, tail) for regex in regexes
    )


@dataclass(frozen=True)
class CheckedStream:
    """One request's output, cut in front of the id that would end it.

    ``tails[i]`` is the text that the checks look at after ``i + 1`` ids, and ``held[i]`` says
    whether a chunk due then would be suppressed.
    """

    ids: list[int]
    tails: list[str]
    held: list[bool]

    def steps(self, ids_per_step: int) -> list[list[int]]:
        """The ids of each step; what is left for no whole step is left out."""
        ends = range(ids_per_step, len(self.ids) + 1, ids_per_step)
        return [self.ids[end - ids_per_step : end] for end in ends]

    def held_at_steps(self, ids_per_step: int) -> list[bool]:
        """Whether a chunk due at each step would be suppressed."""
        return self.held[ids_per_step - 1 :: ids_per_step]


def check_streams(
    outputs: Sequence[Sequence[int]], stops: StopSet, check: StopCheck
) -> list[CheckedStream]:
    """Walk all streams once, outside any clock."""
    return [_walk(ids, stops, check) for ids in outputs]


def _walk(ids: Sequence[int], stops: StopSet, check: StopCheck) -> CheckedStream:
    tails: list[str] = []
    for end in range(1, len(ids) + 1):
        tail = check.decode(check.window.ids(ids[:end]))
        if finds_any(tail, stops.strings, stops.regexes):
            break
        tails.append(tail)
    held = [may_become_stop(tail, stops.strings) for tail in tails]
    return CheckedStream(list(ids[: len(tails)]), tails, held)


def long_enough(
    streams: Sequence[CheckedStream], stops: StopSet, ids_per_step: int
) -> list[CheckedStream]:
    """The streams that last for a step at least. Raises a usage error where none does."""
    found = [stream for stream in streams if len(stream.ids) >= ids_per_step]
    if not found:
        raise usage_error(
            f"the stop '{stops.name}' ends every stream of the scenario in its "
            "first step; choose one that its texts do not begin with"
        )
    return found


StreamsByStops = dict[StopSet, list[CheckedStream]]


def write_streams(streams: StreamsByStops, workload_file: str) -> None:
    """Keep walked streams beside the workload: walking them takes workers half a second each."""
    _file_beside(workload_file).write_bytes(msgspec.msgpack.encode(list(streams.items())))


def read_streams(workload_file: str) -> StreamsByStops:
    """What ``write_streams`` kept."""
    content = _file_beside(workload_file).read_bytes()
    return dict(msgspec.msgpack.decode(content, type=list[tuple[StopSet, list[CheckedStream]]]))


def _file_beside(workload_file: str) -> Path:
    return Path(workload_file).with_suffix(".streams")
