"""From measured rows and counts to what they mean for a step: the details of a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from detokbench.bench.plan import PreparedStops, StreamCount
from detokbench.bench.stop_sets import StopSet
from detokbench.model.calls import TAIL_STR, chapter_calls
from detokbench.model.crossover import crossover
from detokbench.model.curves import Line
from detokbench.model.growth import fitted_parts, fitted_power
from detokbench.model.hold_back import hold_back_s, vllm_hold_back_chars
from detokbench.model.tail_str import (
    Decodes,
    Parts,
    headroom_used,
    parts_per_step,
    scheduler_s,
    step_with_scheduler_s,
)
from detokbench.records.schema import Metric, Row
from detokbench.records.tail_str import (
    Assumed,
    AssumedPoint,
    BatchPoint,
    Growth,
    GrowthPoint,
    Setting,
    StopFacts,
    TailStrDetails,
    TStepFacts,
)
from detokbench.tstep.curves import TStepCurve

_REFERENCE_BATCH = 256
"""The batch of the chapter's example; hold-backs are turned into time at the nearest one."""


@dataclass(frozen=True)
class Asked:
    """What the command line asks of the model; nothing of it changes what is measured."""

    t_step: TStepCurve
    batches: list[int]
    overlap: bool
    assumed_call_s: float | None = None


class _Measured:
    """The measured rows by what they measure."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {
            (row.stop, row.metric, row.ids_per_step, row.stream_interval): row for row in rows
        }

    def find(self, stop: str, metric: Metric, ids: int, interval: int | None = None) -> Row | None:
        return self._rows.get((stop, metric, ids, interval))

    def samples(self, stop: str, metric: Metric, ids: int) -> list[float | None]:
        """A value a process; of a part that was not measured, since there is none, nothing."""
        row = self.find(stop, metric, ids)
        return [] if row is None else row.samples

    def median(self, stop: str, metric: Metric, ids: int) -> float:
        row = self.find(stop, metric, ids)
        return 0.0 if row is None or row.median is None else row.median


def tail_str_details(
    prepared: PreparedStops, rows: Sequence[Row], streams: int, asked: Asked
) -> TailStrDetails:
    """Model every setting from its parts, and from the measured cost the step over the batch."""
    measured = _Measured(rows)
    given = {stops.name for stops in prepared.given}
    settings = [
        setting
        for count in prepared.counts
        if (setting := _setting(count, measured, asked.t_step, count.stop in given)) is not None
    ]
    main = next(count for count in prepared.counts if count.stop in given)
    reference = min(asked.batches, key=lambda batch: abs(batch - _REFERENCE_BATCH))
    reference_s = asked.t_step(reference)
    return TailStrDetails(
        streaming=main.stream_interval is not None,
        overlap=asked.overlap,
        streams=streams,
        chars_per_id=prepared.chars_per_id,
        ids_per_step=main.ids_per_step,
        stream_interval=main.stream_interval,
        t_step=_t_step_facts(asked.t_step, reference, reference_s),
        stops=[
            _stop_facts(stops, prepared, _main_count(prepared, stops.name, main), reference_s)
            for stops in prepared.given
        ],
        settings=settings,
        batches=[
            point
            for setting in settings
            if _is_main(setting, main) and setting.is_given
            for point in _batch_points(setting, asked)
        ],
        growth=_growth(prepared, measured),
        assumed=None if asked.assumed_call_s is None else _assumed(asked.assumed_call_s, asked),
    )


def _is_main(one: Setting | StreamCount, main: StreamCount) -> bool:
    return (one.ids_per_step, one.stream_interval) == (main.ids_per_step, main.stream_interval)


def _main_count(prepared: PreparedStops, stop: str, main: StreamCount) -> StreamCount:
    return next(count for count in prepared.counts if count.stop == stop and _is_main(count, main))


def _setting(
    count: StreamCount, measured: _Measured, t_step: TStepCurve, is_given: bool
) -> Setting | None:
    ids = count.ids_per_step
    row = measured.find(count.stop, "both_checks", ids, count.stream_interval)
    if row is None or row.median is None or row.median <= 0:
        return None
    decodes = Decodes(count.finish, count.regex_retries, count.prefix)

    def parts(value: Callable[[str, Metric, int], float]) -> Parts:
        once = Parts(
            value(count.stop, "decode", ids),
            value(count.stop, "contain", ids),
            value(count.stop, "decode", 1) if decodes.prefix else 0.0,
            value(count.stop, "prefix_scan", 1) if decodes.prefix else 0.0,
        )
        return parts_per_step(decodes, once)

    errors = [
        parts(lambda *key, n=number: measured.samples(*key)[n] or 0.0).total_s / value - 1
        for number, value in enumerate(row.samples)
        if value is not None and value > 0  # a fitted slope can fall below on a machine that stalls
    ]
    medians = parts(measured.median)
    found = crossover(Line(0.0, row.median), t_step, largest_batch=t_step.largest_batch)
    return Setting(
        stop=count.stop,
        ids_per_step=ids,
        stream_interval=count.stream_interval,
        is_given=is_given,
        decodes=decodes.total,
        decodes_floor=count.floor,
        finish_decode_s=medians.finish_decode_s,
        contain_s=medians.contain_s,
        prefix_decode_s=medians.prefix_decode_s,
        prefix_scan_s=medians.prefix_scan_s,
        modelled_s=medians.total_s,
        measured_s=row.median,
        measured_low_s=row.ci_low,
        measured_high_s=row.ci_high,
        error=median(errors),
        error_worst=max(errors, key=abs),
        crossover=found.text,
        crossover_batch=found.batch,
        crossover_why=found.reason,
    )


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def _batch_points(setting: Setting, asked: Asked) -> Iterable[BatchPoint]:
    for batch in asked.batches:
        t_step_s = asked.t_step(batch)
        host_s = scheduler_s(batch, setting.measured_s)
        yield BatchPoint(
            stop=setting.stop,
            batch=batch,
            scheduler_s=host_s,
            t_step_s=t_step_s,
            step_overlap_s=step_with_scheduler_s(t_step_s, host_s, overlap=True),
            step_added_s=step_with_scheduler_s(t_step_s, host_s, overlap=False),
            share=headroom_used(t_step_s, host_s),
            fits=asked.t_step.fits(batch),
        )


def _t_step_facts(t_step: TStepCurve, batch: int, seconds: float) -> TStepFacts:
    return TStepFacts(
        source=t_step.source,
        gpu=t_step.gpu,
        model=t_step.model,
        context=t_step.context,
        largest_batch=t_step.largest_batch,
        reference_batch=batch,
        reference_s=seconds,
    )


def _stop_facts(
    stops: StopSet, prepared: PreparedStops, count: StreamCount, step_s: float
) -> StopFacts:
    chars = vllm_hold_back_chars(stops.strings)
    streams = count.stream_interval is not None and bool(stops.strings)
    return StopFacts(
        name=stops.name,
        strings=list(stops.strings),
        regexes=list(stops.regexes),
        tokens=stops.tokens,
        window=prepared.windows[stops.name],
        hold_back_chars=chars,
        hold_back_s=hold_back_s(chars, prepared.chars_per_id, count.ids_per_step, step_s),
        chunks=count.chunks if streams else None,
        suppressed=count.suppressed,
        longest_steps=count.longest_steps,
        longest_chars=count.longest_chars,
        longest_s=count.longest_steps * step_s,
        cut_streams=count.cut_streams,
    )


def _growth(prepared: PreparedStops, measured: _Measured) -> Growth | None:
    """The scan over lengths; None for fewer than two of them, or requests that do not stream."""
    points = sorted(_growth_points(prepared, measured), key=lambda point: point.tokens)
    chars = [point.scanned_chars for point in points]
    if len(set(chars)) < 2:
        return None
    scans = [point.prefix_scan_s for point in points]
    parts = fitted_parts(chars, scans)
    # A scan that finds nothing copies 1, 2, … n characters, twice.
    copied = [length * (length + 1) for length in chars]
    return Growth(
        points=points,
        power=fitted_power(chars, scans),
        power_at_end=fitted_power(chars[-2:], scans[-2:]) if chars[-1] != chars[-2] else None,
        power_copied=fitted_power(chars, copied),
        fixed_s=parts.fixed,
        per_char_s=parts.per_unit,
        per_square_s=parts.per_square,
        overtaking_chars=_finite(parts.overtaking_length),
    )


def _growth_points(prepared: PreparedStops, measured: _Measured) -> list[GrowthPoint]:
    return [
        GrowthPoint(
            tokens=stops.tokens or 0,
            chars=len(stops.strings[0]),
            scanned_chars=prepared.scanned_chars[stops.name],
            contain_s=measured.median(stops.name, "contain", 1),
            decode_s=measured.median(stops.name, "decode", 1),
            prefix_scan_s=scan.median or 0.0,
            both_s=both.median or 0.0,
        )
        for stops in prepared.growth
        if (scan := measured.find(stops.name, "prefix_scan", 1)) and (scan.median or 0) > 0
        if (both := measured.find(stops.name, "both_checks", 1, 1)) and (both.median or 0) > 0
    ]


def _assumed(call_s: float, asked: Asked) -> Assumed:
    """The chapter's count times a given cost; never set against a T_step of another source."""
    one_s = chapter_calls(TAIL_STR, 1) * call_s
    given = asked.t_step.source == "given"
    return Assumed(
        call_s=call_s,
        points=[
            AssumedPoint(
                batch=batch,
                calls=chapter_calls(TAIL_STR, batch),
                scheduler_s=scheduler_s(batch, one_s),
            )
            for batch in asked.batches
        ],
        crossover=crossover(Line(0.0, one_s), asked.t_step).text if given else None,
    )
