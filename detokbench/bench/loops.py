"""The timed loops. Each runs one kind of call over prepared arguments and returns nanoseconds.

One loop a kind, so that nothing stands between the clock and the call but the loop itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

from detokbench.stops.prefix_check import suppresses_chunk
from detokbench.stops.tail_window import Decode, TailWindow


def time_steps(
    step: Callable[[Sequence[int], Sequence[list[int]]], list[str]],
    rows: Sequence[int],
    batches: Sequence[Sequence[list[int]]],
) -> int:
    """Steps of a path, each with the new ids of all rows."""
    start = perf_counter_ns()
    for ids in batches:
        step(rows, ids)
    return perf_counter_ns() - start


def time_stream_steps(pairs: Sequence[tuple[Callable[..., Any], int]], tokenizer: Any) -> int:
    """``DecodeStream.step`` of many streams, as (bound method, token id)."""
    start = perf_counter_ns()
    for step, token_id in pairs:
        step(tokenizer, token_id)
    return perf_counter_ns() - start


def time_calls(call: Callable[..., Any], arguments: Sequence[Any], flags: dict[str, bool]) -> int:
    """``call(argument, …flags)`` for each argument, the flags spelt out as the paths spell them."""
    if not flags:
        return _time_plain(call, arguments)
    if set(flags) == {"skip_special_tokens"}:
        return _time_skip(call, arguments, flags["skip_special_tokens"])
    return _time_skip_and_spaces(
        call, arguments, flags["skip_special_tokens"], flags["spaces_between_special_tokens"]
    )


def _time_plain(call: Callable[..., Any], arguments: Sequence[Any]) -> int:
    start = perf_counter_ns()
    for argument in arguments:
        call(argument)
    return perf_counter_ns() - start


def _time_skip(call: Callable[..., Any], arguments: Sequence[Any], skip: bool) -> int:
    start = perf_counter_ns()
    for argument in arguments:
        call(argument, skip_special_tokens=skip)
    return perf_counter_ns() - start


def _time_skip_and_spaces(
    call: Callable[..., Any], arguments: Sequence[Any], skip: bool, spaces: bool
) -> int:
    start = perf_counter_ns()
    for argument in arguments:
        call(argument, skip_special_tokens=skip, spaces_between_special_tokens=spaces)
    return perf_counter_ns() - start


def time_finish_checks(
    find: Callable[[list[int], int], Any], outputs: Sequence[list[int]], accepted: int
) -> int:
    """One finish check of each output."""
    start = perf_counter_ns()
    for output in outputs:
        find(output, accepted)
    return perf_counter_ns() - start


def time_prefix_checks(
    outputs: Sequence[list[int]], strings: Sequence[str], window: TailWindow, decode: Decode
) -> tuple[int, list[bool]]:
    """One prefix check of each output; and whether each chunk is to be suppressed."""
    start = perf_counter_ns()
    held = [suppresses_chunk(output, strings, window, decode) for output in outputs]
    return perf_counter_ns() - start, held


def time_holds(suppresses: Callable[[Any], bool], outputs: Sequence[Any]) -> tuple[int, list[bool]]:
    """One prefix check of each output by a function that does it all."""
    start = perf_counter_ns()
    held = [suppresses(output) for output in outputs]
    return perf_counter_ns() - start, held


def time_tail_decodes(
    decode: Decode,
    cut: Callable[[Sequence[int], int], Sequence[int]],
    outputs: Sequence[Sequence[int]],
    accepted: int,
) -> int:
    """The tail of each output, cut and decoded."""
    start = perf_counter_ns()
    for output in outputs:
        decode(cut(output, accepted))
    return perf_counter_ns() - start


def time_tail_scans(scan: Callable[..., Any], tails: Sequence[str], stops: Sequence[Any]) -> int:
    """``scan(tail, …stops)`` of each tail; one or two kinds of stops."""
    if len(stops) == 1:
        return _time_one_kind(scan, tails, stops[0])
    return _time_two_kinds(scan, tails, *stops)


def _time_one_kind(scan: Callable[..., Any], tails: Sequence[str], strings: Any) -> int:
    start = perf_counter_ns()
    for tail in tails:
        scan(tail, strings)
    return perf_counter_ns() - start


def _time_two_kinds(
    scan: Callable[..., Any], tails: Sequence[str], strings: Any, regexes: Any
) -> int:
    start = perf_counter_ns()
    for tail in tails:
        scan(tail, strings, regexes)
    return perf_counter_ns() - start
