"""What stands below the tables of an ``encode`` record: what their columns are, and warnings."""

from __future__ import annotations

from detokbench.model.latency import sample_floor
from detokbench.records.encode import MOST_ARRIVALS, patience_s
from detokbench.records.schema import Row
from detokbench.report.encode_figures import EncodeFigures
from detokbench.report.units import count, milliseconds

_DISTURBED = 1.5  # wall time over CPU time of work that waits for nothing
_NOISY_PERCENT = 30


def spread_percent(row: Row) -> float | None:
    """Half the interval, in per cent of the median."""
    if row.ci_low is None or row.ci_high is None or not row.median:
        return None
    return 50 * (row.ci_high - row.ci_low) / row.median


def arrival_note(figures: EncodeFigures) -> str:
    """What the columns of the table of arrivals are, and which lengths arrived."""
    details = figures.details
    seconds = f"{details.duration_s:g} s"
    idle = details.idle_blocked_s
    resting = "" if idle is None else f" (idle: {milliseconds(idle)} ms)"
    return (
        f"{_arrived(figures)}wait: from arrival until the ids are there, that is TTFT added, "
        f"{seconds} of Poisson arrivals; p99 from {sample_floor(99)} requests on. given up: "
        f"requests not done {patience_s(details.duration_s):g} s after the last arrival; the waits "
        f"are of the others only. Beyond 1.0 of one thread the queue grows for as long as requests "
        f"arrive: {seconds} of that is no steady state.{_held(figures)} blocked: the loop's "
        f"longest stand-still{resting}. micro-batch: "
        f"at most {details.max_batch} prompts, at most {milliseconds(details.wait_s)} ms."
    )


def _held(figures: EncodeFigures) -> str:
    """That a stream has no more requests, where one was held to that number."""
    if all(cell.offered < MOST_ARRIVALS for cell in figures.details.arrivals):
        return ""
    return f" No stream has more than {MOST_ARRIVALS:,} requests."


def _arrived(figures: EncodeFigures) -> str:
    """Which of the lengths arrived; nothing where all of them did."""
    lengths = list(dict.fromkeys(length for length, _ in figures.streams()))
    if len(lengths) == len(figures.details.lengths):
        return ""
    return f"Of the lengths only {' and '.join(map(count, lengths))} arrive. "


def stall_note(figures: EncodeFigures) -> str:
    """What the columns of the table of admissions are."""
    details = figures.details
    step = milliseconds(details.t_step_s)
    return (
        f"{details.streams} streams stepped every {step} ms (given), a request admitted every "
        f"{details.admit_every} steps. ITL: the gaps of the streams, measured; p99 from "
        f"{sample_floor(99)} gaps on. blocked: what an admission took of the loop, itself and the "
        "first token, less an ordinary step (step ms); median and worst over the admissions. CPU: "
        "of the loop's thread meanwhile, the ordinary step included. modelled: from admission and "
        f"first token each timed on its own (worst gap: {step} ms and both)."
    )


def encode_warnings(figures: EncodeFigures) -> list[str]:
    """What makes the figures doubtful."""
    record, details = figures.record, figures.details
    warnings = list(record.warnings)
    if record.partial:
        warnings.append(
            f"partial: {record.settings['processes_finished']} of {record.settings['processes']} "
            f"processes, {len(details.arrivals)} streams of arrivals and {len(details.stalls)} of "
            "steps were finished"
        )
    disturbed = [
        cell
        for cell in details.stalls
        if cell.blocked_s > _DISTURBED * cell.blocked_cpu_s and cell.blocked_s > details.t_step_s
    ]
    if disturbed:
        warnings.append(
            f"in {len(disturbed)} of {len(details.stalls)} streams of steps the loop was blocked "
            f"for over {_DISTURBED} times the CPU it used: others had the CPUs meanwhile"
        )
    warnings += _of_costs([row for row in record.rows if row.metric.startswith("encode")])
    if not any(row.ci_low is not None for row in record.rows) and record.rows:
        warnings.append("too few processes for intervals: run without --quick to judge differences")
    return warnings


def _of_costs(rows: list[Row]) -> list[str]:
    warnings = []
    if any(None in row.samples for row in rows):
        warnings.append(
            "some costs of calls lack a process whose line had no slope above zero: the machine "
            "was disturbed while it ran"
        )
    spreads = [(spread, row) for row in rows if (spread := spread_percent(row)) is not None]
    noisy = [(spread, row) for spread, row in spreads if spread > _NOISY_PERCENT]
    if noisy:
        spread, row = max(noisy, key=lambda entry: entry[0])
        batch = "" if row.metric == "encode" else f"{row.batch} prompts a call, "
        warnings.append(
            f"noisy: the processes disagree by over ±{_NOISY_PERCENT} % on {len(noisy)} of "
            f"{len(spreads)} costs of calls, most on {row.path}, {batch}"
            f"{count(row.prompt_len or 0)} ids (±{spread:.0f} %)"
        )
    return warnings
