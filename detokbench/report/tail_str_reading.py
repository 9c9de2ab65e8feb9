"""What a ``tail-str`` record says, in a few sentences made from its numbers."""

from __future__ import annotations

from statistics import median

from detokbench.records.schema import Record
from detokbench.records.tail_str import (
    BatchPoint,
    Setting,
    TailStrDetails,
    TStepFacts,
    details_of,
)
from detokbench.report.units import duration, microseconds, percent, significant, times


def t_step_words(t_step: TStepFacts) -> str:
    """Where T_step comes from, in a few words."""
    if t_step.source == "given":
        return f"{significant(t_step.reference_s * 1e3, 3)} ms (given)"
    return f"{t_step.source} of {t_step.model} in bf16 on {t_step.gpu}, context {t_step.context}"


def read_tail_str(record: Record) -> list[str]:
    """One sentence for each thing that the record can tell."""
    details = details_of(record)
    given = [setting for setting in details.settings if setting.is_given]
    sentences = [
        *(_pace(setting, details) for setting in given if _is_main(setting, details)),
        _interval(given, details),
        _error(given),
        _growth(details),
        _assumed(details),
        _vllm_hold_back(details),
        _suppression(details),
    ]
    return [sentence for sentence in sentences if sentence]


def _is_main(setting: Setting, details: TailStrDetails) -> bool:
    return (setting.ids_per_step, setting.stream_interval) == (
        details.ids_per_step,
        details.stream_interval,
    )


def _pace(setting: Setting, details: TailStrDetails) -> str:
    """What the scheduler spends on a set of stops, and when that outlasts the GPU."""
    cost = f"'{setting.stop}' takes {_us(setting)} µs a request and step"
    point = _reference(setting, details)
    if point is None:
        return f"{cost}."
    step_s = point.step_overlap_s if details.overlap else point.step_added_s
    how = "with overlap" if details.overlap else "without overlap"
    return (
        f"{cost}; modelled from that, {significant(point.scheduler_s * 1e3, 2)} ms "
        f"of scheduler time a step at B = {point.batch}, {percent(point.share)} % of T_step "
        f"({significant(point.t_step_s * 1e3, 2)} ms, {details.t_step.source}); {how} the step "
        f"lasts {significant(step_s * 1e3, 2)} ms. {_crossing(setting)}"
    )


def _reference(setting: Setting, details: TailStrDetails) -> BatchPoint | None:
    points = [point for point in details.batches if point.stop == setting.stop]
    return next((p for p in points if p.batch == details.t_step.reference_batch), None)


def _crossing(setting: Setting) -> str:
    who = "The checks alone set the pace"
    if setting.crossover == "never":
        return f"{who} at no batch: {setting.crossover_why}."
    if setting.crossover == "always late":
        return f"{who} at every batch: {setting.crossover_why}."
    if setting.crossover_why:
        return f"{who} at no batch that fits: {setting.crossover_why}."
    return f"{who} above B = {setting.crossover}."


def _interval(given: list[Setting], details: TailStrDetails) -> str | None:
    """What a stream interval spares: the prefix check only."""
    same = [
        setting
        for setting in given
        if setting.stop == given[0].stop and setting.ids_per_step == details.ids_per_step
    ]
    if len(same) < 2 or not same[0].stream_interval:
        return None
    first, last = same[0], same[-1]
    return (
        f"A stream interval of {last.stream_interval} brings '{first.stop}' to {_us(last)} µs a "
        f"request and step, {times(last.measured_s / first.measured_s)} that of "
        f"{first.stream_interval}: it spares prefix checks, and the finish check stays."
    )


def _error(given: list[Setting]) -> str | None:
    if not given:
        return None
    middle = median(abs(setting.error) for setting in given)
    worst = max(given, key=lambda setting: abs(setting.error_worst))
    streamed = "" if worst.stream_interval is None else f", k = {worst.stream_interval}"
    return (
        f"The sum of the parts misses the measured checks by {percent(middle)} % (median of "
        f"{len(given)} settings), by {100 * worst.error_worst:+.0f} % at worst ('{worst.stop}', "
        f"{worst.ids_per_step} id{'' if worst.ids_per_step == 1 else 's'} a step{streamed}, one "
        "process): the calls around the parts are in none of them."
    )


def _growth(details: TailStrDetails) -> str | None:
    growth = details.growth
    if growth is None:
        return None
    first, last = growth.points[0], growth.points[-1]
    at_end = growth.power_at_end
    grown = (
        f"From {first.tokens} to {last.tokens} tokens of stop ({first.chars} to {last.chars} "
        f"characters) the prefix scan goes from {microseconds(first.prefix_scan_s)} to "
        f"{microseconds(last.prefix_scan_s)} µs. The characters it copies grow with the power "
        f"{growth.power_copied:.2f} of the length, its time with the power {growth.power:.2f}"
    )
    if at_end is not None and len(growth.points) > 2:
        grown += f", {at_end:.2f} between the two longest"
    turn = f"a turn of its loop takes {significant(growth.per_char_s * 1e9, 2)} ns"
    if growth.overtaking_chars is None:
        return f"{grown}: {turn}, and copying too little to be told."
    return (
        f"{grown}: {turn}, and copying outweighs that beyond about "
        f"{significant(growth.overtaking_chars, 2)} characters only (fitted)."
        if growth.overtaking_chars > last.scanned_chars
        else f"{grown}: copying outweighs the turns of its loop beyond about "
        f"{significant(growth.overtaking_chars, 2)} characters (fitted)."
    )


def _assumed(details: TailStrDetails) -> str | None:
    assumed = details.assumed
    if assumed is None:
        return None
    point = min(assumed.points, key=lambda point: abs(point.batch - details.t_step.reference_batch))
    late = "" if assumed.crossover is None else f", above T_step from B = {assumed.crossover} on"
    return (
        f"At {microseconds(assumed.call_s)} µs a call (given) and two calls a request it would be "
        f"{significant(point.scheduler_s * 1e3, 3)} ms a step at B = {point.batch}{late}."
    )


def _vllm_hold_back(details: TailStrDetails) -> str | None:
    held = [stops for stops in details.stops if stops.hold_back_chars]
    if not details.streaming or not held:
        return None
    each = ", ".join(
        f"{stops.hold_back_chars} characters or about {duration(stops.hold_back_s)} for "
        f"'{stops.name}'"
        for stops in held
    )
    return (
        "vLLM holds back the longest stop less one character until a request ends, and nothing "
        f"where the stop is kept in the output: {each} ({_at_reference(details)}, "
        f"{significant(details.chars_per_id, 2)} characters a token)."
    )


def _suppression(details: TailStrDetails) -> str | None:
    checked = [stops for stops in details.stops if stops.chunks]
    if not checked:
        return None
    hit = [stops for stops in checked if stops.suppressed]
    if not hit:
        chunks = sum(stops.chunks or 0 for stops in checked)
        return (
            f"SGLang would suppress none of the {chunks:,} chunks of these streams: no text that "
            "was sent looked like the beginning of a stop."
        )
    each = ", ".join(
        f"{percent(stops.suppressed / (stops.chunks or 1))} % of chunks for '{stops.name}', at "
        f"most {stops.longest_steps} step{'' if stops.longest_steps == 1 else 's'} on end "
        f"({stops.longest_chars} characters, {duration(stops.longest_s)})"
        for stops in hit
    )
    return f"SGLang suppresses {each} ({_at_reference(details)})."


def _at_reference(details: TailStrDetails) -> str:
    t_step = details.t_step
    return f"at {duration(t_step.reference_s)} a step, B = {t_step.reference_batch}"


def _us(setting: Setting) -> str:
    low, high = setting.measured_low_s, setting.measured_high_s
    return microseconds(setting.measured_s, low, high)
