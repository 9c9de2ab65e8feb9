"""What a ``time-step`` record says, in a few sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.records.schema import Record
from detokbench.report.time_step_rows import Entry, TimeStepRows, gpu_title
from detokbench.report.units import count, data_size, milliseconds, significant, times


def read_time_step(record: Record) -> list[str]:
    """Two to five sentences; one for each thing that the record can tell."""
    rows = TimeStepRows(record)
    sentences = [
        _first_point(rows),
        _ridge(rows),
        _largest_batch(rows),
        _sharing(rows),
        _published(rows),
    ]
    return [sentence for sentence in sentences if sentence]


def _first_point(rows: TimeStepRows) -> str | None:
    if not rows.batches:
        return None
    batch, context = rows.batches[0], rows.contexts[0]
    where = f"At B = {batch} and L = {count(context)} a step"
    roofline = rows.get("roofline", batch, context)
    source = rows.timed_source
    timed = rows.get(source, batch, context) if source else None
    if timed is not None and timed.row.median is not None:
        return f"{where} takes {_timed_step(timed, roofline)}"
    if roofline is None or roofline.row.median is None:
        return None
    takes = "takes" if roofline.point.fits else "would take"
    sentence = (
        f"{where} {takes} {milliseconds(roofline.row.median)} ms by the roofline, bound by "
        f"{roofline.point.bound}: {data_size(roofline.point.bytes_read)} are read"
    )
    derated = rows.get("derated", batch, context)
    if derated is None or derated.row.median is None:
        return sentence + "."
    share = rows.details.options["derate"]
    return f"{sentence}; with {share:g} of the peaks, {milliseconds(derated.row.median)} ms."


def _timed_step(timed: Entry, roofline: Entry | None) -> str:
    row, point = timed
    assert row.median is not None
    took = f"{milliseconds(row.median, row.ci_low, row.ci_high)} ms"
    if row.source == "cpu":
        return f"{took} on this CPU; that shows that the code runs, and nothing of a GPU."
    pace = significant(point.bytes_read / row.median / 1e12, 3)
    read = f"{data_size(point.bytes_read)} are read at {pace} TB/s"
    if roofline is None or not roofline.row.median:
        return f"{took}, measured: {read}."
    ratio = times(row.median / roofline.row.median)
    return (
        f"{took}, measured, {ratio} the roofline's {milliseconds(roofline.row.median)} ms: {read}."
    )


def _ridge(rows: TimeStepRows) -> str | None:
    answers = rows.details.answers
    finite = [
        f"B ≈ {answer.ridge_batch:,.0f} at L = {count(answer.context)}"
        for answer in answers
        if answer.ridge_batch is not None
    ]
    never = [count(answer.context) for answer in answers if answer.ridge_batch is None]
    reason = "there a sequence's KV takes longer to read than its token takes to compute"
    if not answers:
        return None
    if not finite:
        return f"Compute never takes over at L = {_join(never)}: {reason}."
    sentence = f"On paper compute takes over from {_join(finite)}"
    return f"{sentence}, and never at L = {_join(never)}: {reason}." if never else f"{sentence}."


def _largest_batch(rows: TimeStepRows) -> str | None:
    details = rows.details
    if details.gpu is None or details.smallest_tp is not None:
        return None
    room = [
        f"{answer.largest_batch:,} at L = {count(answer.context)}"
        for answer in details.answers
        if answer.largest_batch is not None
    ]
    if not room:
        return None
    return f"The largest batch whose KV fits beside the weights is {_join(room)}."


def _sharing(rows: TimeStepRows) -> str | None:
    details = rows.details
    tp = details.options["tp"]
    if details.smallest_tp is not None and details.gpu is not None:
        return (
            f"{details.model['name']} does not fit into {gpu_title(details.gpu, tp)}; "
            f"--tp {details.smallest_tp} holds its weights."
        )
    if tp == 1:
        return None
    return f"What the {tp} GPUs send each other is left out: the step takes longer than this."


def _published(rows: TimeStepRows) -> str | None:
    ratios = [point.t_step_s / point.roofline_s for point in rows.details.published]
    if not ratios:
        return None
    return (
        f"Published steps of this model on an H100 take {times(min(ratios))} to "
        f"{times(max(ratios))} the roofline: a real T_step leaves the host more time than this."
    )


def _join(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), *parts[-1:]])
