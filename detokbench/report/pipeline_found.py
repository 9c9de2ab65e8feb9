"""The live B* of a ramp in a sentence: a value, a range, or what is missing for one."""

from __future__ import annotations

from detokbench.records.pipeline import PipelineDetails
from detokbench.report.pipeline_verdicts import Disorder, disorder, is_doubtful, without_verdict
from detokbench.report.units import significant


def live_batch(details: PipelineDetails) -> str:
    """The live B* beside the predicted one; what makes it unsure is said in place of a comparison.

    Where verdicts are not in order of the batch it is a range.
    """
    prediction = details.prediction
    assert prediction is not None
    predicted = f"predicted {prediction.answer}"
    order = disorder(details.runs)
    if order is not None and details.live_batch is not None:
        return f"{_range(details, order)} ({predicted}).{_unjudged(details)}"
    if details.live_batch is not None:
        between = f"kept up at {details.live_low}, not at {details.live_high}"
        beside = "" if is_doubtful(details) else _beside(details)
        found = f"Live B* = {significant(details.live_batch, 3)} ({between}){beside}"
        return f"{found}{'; ' + predicted if not beside else ''}.{_unjudged(details)}"
    if details.live_low is None:
        return (
            f"The walk was ended before it found where the host falls behind.{_unjudged(details)}"
        )
    kept = "The host keeps up at all batches"
    if without_verdict(details.runs):
        kept = "The host was seen to fall behind at no batch"
    return (
        f"{kept} to {details.live_low}; by its parts it would fall behind at "
        f"{prediction.answer}.{_unjudged(details)}"
    )


def live_error(details: PipelineDetails) -> float | None:
    """The live B* over the predicted one, less one; None where either is missing."""
    predicted = details.prediction and details.prediction.batch
    if not predicted or details.live_batch is None:
        return None
    return details.live_batch / predicted - 1


def _beside(details: PipelineDetails) -> str:
    """How far from the predicted B* it is: ``, 2 % below the predicted 85``."""
    error = live_error(details)
    if error is None:
        return ""
    assert details.prediction is not None
    answer = details.prediction.answer
    off = round(100 * abs(error))
    if off == 0:
        return f", as predicted ({answer})"
    return f", {off} % {'above' if error > 0 else 'below'} the predicted {answer}"


def _range(details: PipelineDetails, order: Disorder) -> str:
    bounds = f"{order.low} to {order.high}" if order.high else f"{order.low} or more"
    if order.broke == order.held:
        seen = f"runs at {order.broke} disagree"
    else:
        seen = f"{order.broke} broke and {order.held} kept up"
    return f"Live B* = {bounds}: verdicts are not in order of the batch, {seen}"


def _unjudged(details: PipelineDetails) -> str:
    number = sum(bool(run.not_judged) for run in details.runs)
    if not number:
        return ""
    runs = "1 run" if number == 1 else f"{number} runs"
    return f" {runs} could not be judged: the machine was busy; make it again on an idle one."
