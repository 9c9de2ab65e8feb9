"""What a ``pipeline`` record says, in a few sentences made from its numbers."""

from __future__ import annotations

from detokbench.live.judge import LAG_AT_MOST, STEPS_AT_LEAST
from detokbench.live.topology import CLIENTS
from detokbench.records.pipeline import PipelineDetails, RunFacts, details_of
from detokbench.records.schema import Record
from detokbench.report.pipeline_found import live_batch
from detokbench.report.pipeline_model import (
    merges,
    overload_at,
    step_share,
)
from detokbench.report.pipeline_needs import ramp_needs, run_needs
from detokbench.report.pipeline_verdicts import at_batch, busiest_process, steps_share, verdict
from detokbench.report.units import duration, percent, share, times


def read_pipeline(record: Record) -> list[str]:
    """One sentence for each thing that the record can tell."""
    details = details_of(record)
    if details.prediction is None:
        sentences = [_kept_up(run, details) for run in details.runs]
        sentences += [run_needs(run, details) for run in details.runs]
    else:
        sentences = [live_batch(details), _who(details), ramp_needs(details), _above(details)]
    sentences += [_no_work(details), _text(details), _clients(details)]
    return [sentence for sentence in sentences if sentence]


def _kept_up(run: RunFacts, details: PipelineDetails) -> str:
    at = at_batch(run)
    if not run.steps:
        return f"{at[0].upper()}{at[1:]} nothing is known: the engine did not answer."
    if run.broken:
        return f"{at[0].upper()}{at[1:]} the host does not keep up: {run.broken}."
    if run.not_judged:
        return f"{at[0].upper()}{at[1:]} the run is {verdict(run)}.{_idle(run)}"
    busiest = busiest_process(run, details)
    how = "" if busiest is None else f": the busiest process of the host, {busiest.name}, uses "
    how += "" if busiest is None else f"{percent(busiest.cpu_share or 0)} % of a core"
    return f"{at[0].upper()}{at[1:]} the host keeps up{how}."


def _idle(run: RunFacts) -> str:
    """Why a late host is not the run's own fault, and what to do."""
    is_engine = run.not_judged.startswith("the scheduler")
    busy = run.engine_cpu_share if is_engine else run.busiest_cpu_share
    if run.is_client_bound or busy is None:
        return ""
    which = "The engine's CPU" if is_engine else "No CPU of the host"
    kept = "for only" if is_engine else "for more than"
    return (
        f" {which} was busy with this run {kept} {share(busy)} of the time: make it again on an "
        "idle machine."
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
        if part.process != CLIENTS
    )
    reading = sum(part.seconds for part in parts if part.process == CLIENTS) / total
    theirs = (
        f"; {percent(reading)} % is reading by the clients, which a server does not pay: B* is "
        "too low by that"
        if reading
        else ""
    )
    return (
        f"What decides is {prediction.busiest}: {duration(total / last)} a sequence and step at "
        f"B = {last}, of which {shares}{theirs}."
    )


def _above(details: PipelineDetails) -> str:
    """What overload looked like at the deepest run, beside what the model says of it."""
    late = [run for run in details.runs if run.broken and run.typical_chunks_per_token is not None]
    prediction = details.prediction
    if not late or prediction is None:
        return ""
    run = max(late, key=lambda run: run.batch)
    if is_short_of_steps(run, details):
        return (
            f"At B = {run.batch} the engine did {share(steps_share(run, details.t_step_s))} of the "
            f"steps due; the measured parts predict "
            f"{share(step_share(details, prediction, run.batch))} (T_step over what "
            f"{prediction.busiest} takes for a step)."
        )
    model = overload_at(details, prediction, run.batch)
    seen = f"fell behind by {1e3 * max(run.lag_s_per_s, 0):.0f} ms a second"
    predicted = f"{1e3 * model.lag_s_per_s:.0f} ms"
    if details.topology != "vllm":
        return (
            f"At B = {run.batch} the text {seen}; the measured parts predict {predicted} a second."
        )
    return (
        f"At B = {run.batch} there were {run.typical_chunks_per_token:.2f} chunks a token and the "
        f"text {seen}; the measured parts predict {model.chunks_per_token:.2f} chunks a token and "
        f"{predicted}. {_why(details, run.batch)}"
    )


def is_short_of_steps(run: RunFacts, details: PipelineDetails) -> bool:
    """Whether a run is late in the engine: steps are missing, and the text follows what is done."""
    missing = steps_share(run, details.t_step_s) < STEPS_AT_LEAST
    return missing and run.lag_s_per_s <= LAG_AT_MOST


def _why(details: PipelineDetails, batch: int) -> str:
    """Why vLLM's front end merges, or does not."""
    if merges(details, batch):
        return (
            f"A step here is one slice of the loop (up to {details.chunk_size} rows): while steps "
            "wait, readers get no turn, and what they have not read merges."
        )
    return (
        f"A step here is several slices of {details.chunk_size} rows: readers get a turn between "
        "two of them, so that nothing merges and the text falls behind."
    )


def _no_work(details: PipelineDetails) -> str:
    """SGLang's detokenizers that no front end's hash leads to."""
    idle = [
        process.name
        for process in (details.runs[-1].processes if details.runs else [])
        if process.ids == 0 and process.name.startswith("detokenizer") and details.runs[-1].ids
    ]
    if not idle:
        return ""
    by = "front end" if details.front_ends > 1 else "request"
    return f"{', '.join(idle)} got no work: SGLang assigns by {by} (hash)."


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
    """The self-test, and what it is for: how far from their limit the clients were."""
    test = details.self_test
    if test is None:
        return ""
    sent = max(
        (
            (run.chunks_per_token or 0) * run.ids / run.duration_s
            for run in details.runs
            if run.duration_s > 0
        ),
        default=0,
    )
    room = f", {times(test.events_per_s / sent)} what a run here sent at most" if sent else ""
    return (
        f"Test of the clients: they could take {test.events_per_s:,.0f} chunks a second{room} "
        f"(canned streams, {test.events_per_s / test.reads_per_s:.1f} chunks a read)."
    )
