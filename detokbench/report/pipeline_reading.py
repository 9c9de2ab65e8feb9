"""What a ``pipeline`` record says, in a few sentences made from its numbers."""

from __future__ import annotations

from typing import NamedTuple

from detokbench.model.curves import Measured
from detokbench.model.queue import merged_chunks_per_step, queue_state
from detokbench.records.pipeline import PipelineDetails, Prediction, RunFacts, details_of
from detokbench.records.schema import Record
from detokbench.report.units import duration, percent, significant

_CHUNK_PARTS = {"queue", "HTTP"}


def read_pipeline(record: Record) -> list[str]:
    """One sentence for each thing that the record can tell."""
    details = details_of(record)
    if details.prediction is None:
        sentences = [_kept_up(run, details) for run in details.runs]
        sentences += [_text(details), _clients(details)]
    else:
        sentences = [_found(details), _who(details), _above(details), _text(details)]
        sentences.append(_clients(details))
    return [sentence for sentence in sentences if sentence]


def _kept_up(run: RunFacts, details: PipelineDetails) -> str:
    if run.broken:
        return f"At B = {run.batch} the host does not keep up: {run.broken}."
    busiest = max(run.processes, key=lambda process: process.cpu_share or 0)
    return (
        f"At B = {run.batch} the host keeps up: the busiest process, {busiest.name}, uses "
        f"{percent(busiest.cpu_share or 0)} % of a core."
    )


def live_error(details: PipelineDetails) -> float | None:
    """The live B* over the predicted one, less one; None where either is missing."""
    predicted = details.prediction and details.prediction.batch
    if not predicted or details.live_batch is None:
        return None
    return details.live_batch / predicted - 1


def _found(details: PipelineDetails) -> str:
    prediction = details.prediction
    assert prediction is not None
    if details.live_batch is None:
        if details.live_low is None:
            return "The walk was ended before it found where the host falls behind."
        return (
            f"The host keeps up at all batches to {details.live_low}; by its parts it would fall "
            f"behind at {prediction.answer}."
        )
    error = live_error(details)
    beside = "" if error is None else f", {100 * error:+.0f} % beside the predicted"
    return (
        f"Live B* = {significant(details.live_batch, 3)} (kept up at {details.live_low}, not at "
        f"{details.live_high}){beside} {prediction.answer}."
    )


def _who(details: PipelineDetails) -> str:
    """Which parts make up the busiest process at the largest batch that was measured."""
    prediction = details.prediction
    assert prediction is not None
    last = prediction.batches[-1]
    names = prediction.busiest.split(" + ")
    parts = [p for p in prediction.parts if p.batch == last and p.process in names]
    total = sum(part.seconds for part in parts)
    shares = ", ".join(
        f"{part.part} {percent(part.seconds / total)} %"
        for part in sorted(parts, key=lambda part: -part.seconds)
    )
    return (
        f"What decides is {prediction.busiest}: {duration(total / last)} a sequence and step at "
        f"B = {last}, of which {shares}."
    )


def _above(details: PipelineDetails) -> str:
    """What overload looked like at the deepest run, beside what the model says of it."""
    late = [run for run in details.runs if run.broken and run.typical_chunks_per_token is not None]
    prediction = details.prediction
    if not late or prediction is None:
        return ""
    run = max(late, key=lambda run: run.batch)
    seen = (
        f"At B = {run.batch} there were {run.typical_chunks_per_token:.2f} chunks a token and the "
        f"text fell behind by {1e3 * max(run.lag_s_per_s, 0):.0f} ms a second"
    )
    model = overload_at(details, prediction, run.batch)
    return (
        f"{seen}; by the parts it would be {model.chunks_per_token:.2f} and "
        f"{1e3 * model.lag_s_per_s:.0f} ms{_why(details, run.batch)}."
    )


def _why(details: PipelineDetails, batch: int) -> str:
    """Why vLLM's front end merges, or does not."""
    if details.topology != "vllm":
        return ""
    if merges(details, batch):
        return ", for a step of one slice leaves readers no turn while steps wait"
    return ", for a step of several slices gives readers a turn, so that nothing merges"


def host_at(prediction: Prediction, batch: float) -> float:
    """Seconds a step of the busiest CPU, by the measured parts."""
    return Measured(tuple(map(float, prediction.batches)), tuple(prediction.host_s))(batch)


class Overload(NamedTuple):
    """What a reader sees at one batch, by the measured parts."""

    chunks_per_token: float
    itl_s: float
    lag_s_per_s: float


def merges(details: PipelineDetails, batch: int) -> bool:
    """Whether unread chunks merge under overload: where a step is one slice of the loop.

    While steps wait, vLLM's output handler goes from one to the next without a turn of the loop;
    only between two slices of a step do readers get one.
    """
    return details.topology == "vllm" and batch / details.front_ends <= details.chunk_size


def overload_at(details: PipelineDetails, prediction: Prediction, batch: int) -> Overload:
    """Chunks that merge spare their own cost; what is left over T_step makes the text lag."""
    t_step_s, due = details.t_step_s, 1 / details.interval
    host_s = host_at(prediction, batch)
    chunks = 1.0
    if merges(details, batch):
        fixed_s, chunk_s = _front_end_parts(prediction, batch)
        merged = merged_chunks_per_step(batch, fixed_s, chunk_s, t_step_s)
        chunks = 0.0 if merged is None else merged
        host_s = max(fixed_s, min(host_s, t_step_s))
    state = queue_state(batch, host_s, t_step_s)
    return Overload(chunks * due, state.itl_s, state.lag_s_per_s)


def _front_end_parts(prediction: Prediction, batch: int) -> tuple[float, float]:
    """Of one front end at a batch: seconds a step without chunks, and seconds a chunk."""
    chunk_s, fixed_s = {}, {}
    for at in prediction.batches:
        parts = [p for p in prediction.parts if p.batch == at and p.process.startswith("front-end")]
        own = [part for part in parts if part.process == parts[0].process]
        chunk_s[at] = sum(part.seconds for part in own if part.part in _CHUNK_PARTS) / at
        fixed_s[at] = sum(part.seconds for part in own if part.part not in _CHUNK_PARTS)
    at_batch = Measured.from_points
    return at_batch(fixed_s)(batch), max(at_batch(chunk_s)(batch), 0.0)


def _text(details: PipelineDetails) -> str:
    checked = sum(run.checked for run in details.runs)
    wrong = sum(run.wrong for run in details.runs)
    if not checked:
        return ""
    if not wrong:
        return f"The text of all {checked:,} sampled requests is that of the ids sent."
    first = next(run.first_difference for run in details.runs if run.wrong)
    return f"{wrong:,} of {checked:,} sampled requests have another text than their ids: {first}."


def _clients(details: PipelineDetails) -> str:
    test = details.self_test
    if test is None:
        return ""
    return (
        f"The clients' process takes {test.events_per_s:,.0f} canned chunks a second in "
        f"{test.reads_per_s:,.0f} reads, at {percent(test.cpu_share)} % of a core."
    )
