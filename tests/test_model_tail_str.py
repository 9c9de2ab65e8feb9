"""Decodes of SGLang's scheduler: the rates, a stream counted, and a scheduler played through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detokbench.model.tail_str import (
    Decodes,
    decodes_of_stream,
    decodes_per_step,
    headroom_used,
    request_step_s,
    scheduler_s,
    step_with_scheduler_s,
)
from detokbench.stops.finish_check import StopCheck, find_finish
from detokbench.stops.prefix_check import suppresses_chunk
from detokbench.stops.tail_window import TailWindow

deterministic = settings(derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("strings", "regexes", "streaming", "interval", "ids_per_step", "expected"),
    [
        (0, 0, True, 1, 1, 0),
        (1, 0, False, 1, 1, 1),
        (1, 0, True, 1, 1, 2),
        (3, 0, True, 4, 1, 1.25),
        (0, 1, True, 1, 1, 1),
        (1, 0, True, 4, 2, 1.5),
        (1, 0, True, 2, 4, 2),
        (0, 1, True, 1, 4, 4),
        (0, 2, False, 1, 4, 7),
        (1, 1, True, 1, 4, 5),
    ],
)
def test_decodes_a_request_and_step(
    *,
    strings: int,
    regexes: int,
    streaming: bool,
    interval: int,
    ids_per_step: int,
    expected: float,
) -> None:
    found = decodes_per_step(
        strings, regexes, streaming=streaming, interval=interval, ids_per_step=ids_per_step
    )
    assert found.total == pytest.approx(expected)


def test_the_chapters_figure() -> None:
    decodes = decodes_per_step(1, 0, streaming=True)
    step_s = scheduler_s(256, request_step_s(decodes, 10e-6, 10e-6))
    assert step_s == pytest.approx(5.12e-3)
    assert step_with_scheduler_s(4.48e-3, step_s, overlap=True) == pytest.approx(5.12e-3)
    assert step_with_scheduler_s(4.48e-3, step_s, overlap=False) == pytest.approx(9.60e-3)
    assert headroom_used(4.48e-3, step_s) == pytest.approx(8 / 7)


@pytest.mark.parametrize(("batch", "expected_ms"), [(128, 1.74), (256, 3.48)])
def test_the_public_report(batch: int, expected_ms: float) -> None:
    """sglang PR#35246: 1.7 and 3.5 ms a step at 6.8 µs a decode."""
    decodes = decodes_per_step(1, 0, streaming=True)
    step_s = scheduler_s(batch, request_step_s(decodes, 6.8e-6, 6.8e-6))
    assert step_s * 1e3 == pytest.approx(expected_ms, abs=0.005)


def test_scans_come_on_top_of_decodes() -> None:
    decodes = Decodes(finish=1, regex_retries=3, prefix=0.5)
    assert request_step_s(decodes, 2e-6, 1e-6, 0.1e-6, 4e-6) == pytest.approx(4 * 2.1e-6 + 2.5e-6)


def test_a_suppressed_chunk_is_checked_at_every_step_until_it_goes() -> None:
    held = [False, False, True, True, False, False, False, False]
    found = decodes_of_stream([1] * 8, held, interval=2)
    # Due at steps 0, 2, 3, 4, 6: the interval alone would have made it 0, 2, 4, 6.
    assert found == Decodes(8, 0, 5)


def test_a_suppressed_first_token_stays_due() -> None:
    found = decodes_of_stream([1] * 6, [True, True, False, False, False, False], interval=4)
    assert found.prefix == 3


def test_regexes_are_retried_for_the_ids_accepted() -> None:
    found = decodes_of_stream([1, 4, 2], [False] * 3, regexes=2)
    assert found == Decodes(3, 8, 2)


def play(ids: str, accepted: int, interval: int, stops: tuple[str, ...], regexes: tuple[str, ...]):
    """One request through SGLang's scheduler: its decodes, its steps, and which would hold back."""
    decoded: list[int] = []

    def decode(window: list[int]) -> str:
        decoded.append(len(window))
        return "".join(map(chr, window))

    window = TailWindow.for_stops(stops, regexes, lambda text: [*map(ord, text)])
    check = StopCheck(stops, regexes, window, decode)
    output: list[int] = []
    sent, held = 0, []
    steps = len(ids) // accepted
    for step in range(steps):
        output.extend(map(ord, ids[step * accepted : (step + 1) * accepted]))
        assert find_finish(output, accepted, steps * accepted + 1, check) is None
        held.append(suppresses_chunk(output, stops, window, lambda tail: "".join(map(chr, tail))))
        due = interval == 1 or len(output) - sent >= interval or sent == 0
        if due and step < steps - 1 and not suppresses_chunk(output, stops, window, decode):
            sent = len(output)
    return len(decoded), steps, held


@deterministic
@given(
    ids=st.text("ab<", min_size=12, max_size=60),
    accepted=st.integers(1, 5),
    interval=st.integers(1, 9),
    regexes=st.sampled_from([(), ("[xyz]",), ("x", "y{2}")]),
)
def test_counts_are_those_of_a_scheduler_played_through(
    ids: str, accepted: int, interval: int, regexes: tuple[str, ...]
) -> None:
    decodes, steps, held = play(ids, accepted, interval, ("</s>", "<<END"), regexes)
    counted = decodes_of_stream([accepted] * steps, held, regexes=len(regexes), interval=interval)
    assert decodes == counted.total


@pytest.mark.parametrize("interval", [1, 2, 3, 5])
@pytest.mark.parametrize("accepted", [1, 2, 4])
def test_the_rates_are_those_of_a_long_stream(accepted: int, interval: int) -> None:
    decodes, steps, _ = play("a" * 2400, accepted, interval, ("STOP",), ("[xyz]",))
    rate = decodes_per_step(1, 1, streaming=True, interval=interval, ids_per_step=accepted)
    assert decodes / steps == pytest.approx(rate.total, rel=0.01)
