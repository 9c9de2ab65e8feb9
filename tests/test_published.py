"""Nobody has measured a step below the roofline; if one seems to be, a figure is wrong."""

import pytest

from detokbench.tstep.gpus import find_gpu
from detokbench.tstep.published import AICONFIGURATOR_DERATE, PublishedStep, published_steps
from detokbench.tstep.roofline import step_time_s
from detokbench.tstep.shapes import find_shape


@pytest.mark.parametrize("step", published_steps(), ids=lambda s: f"{s.source}-{s.t_step_ms}")
def test_the_roofline_is_below_every_published_step(step: PublishedStep) -> None:
    shape, gpu = find_shape("llama-3-8b"), find_gpu("h100-sxm")
    roofline = step_time_s(shape, gpu, step.batch, step.context or 0)
    assert roofline.total_s < step.t_step_s
    # Batch 1 is bound by memory: between a half and all of the data sheet's bandwidth.
    if step.batch == 1:
        assert 0.5 < roofline.total_s / step.t_step_s < 0.95


def test_the_hardware_is_named_only_where_the_source_names_it() -> None:
    named = {step.engine.split()[0] for step in published_steps() if step.hardware}
    assert named == {"vLLM", "torchao"}
    assert all(step.source for step in published_steps())


def test_aiconfigurators_derate_gives_5_60_ms() -> None:
    shape, gpu = find_shape("llama-3-8b"), find_gpu("h100-sxm")
    derated = step_time_s(shape, gpu, 1, 0, derate=AICONFIGURATOR_DERATE)
    assert derated.total_s == pytest.approx(5.60e-3, abs=0.005e-3)
