"""The GPU table: every line complete and plausible, names found, unknown ones answered."""

import pytest

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.tstep.gpus import Gpu, find_gpu, gpu_of_device, known_gpus


def test_the_table_has_the_gpus_people_serve_on() -> None:
    names = [gpu.name for gpu in known_gpus()]
    wanted = "h100-sxm h100-pcie h100-nvl h200 a100-40 a100-80 a100-80-pcie l40s l4 a10g"
    wanted += " rtx-4090 rtx-5090 b200 gh200 mi300x mi325x"
    assert set(wanted.split()) <= set(names)
    assert len(set(names)) == len(names)


def test_the_h100_sxm_is_the_data_sheets() -> None:
    gpu = find_gpu("h100-sxm")
    assert (gpu.bandwidth_bytes_s, gpu.bf16_flop_s, gpu.memory_gb) == (3.35e12, 989e12, 80)


@pytest.mark.parametrize("gpu", known_gpus(), ids=lambda gpu: gpu.name)
def test_every_line_is_complete_and_plausible(gpu: Gpu) -> None:
    assert gpu.source
    assert 20 <= gpu.memory_gb <= 300
    # FLOP a byte at the ridge: outside this range a rate with sparsity or a wrong unit slipped in.
    assert 80 <= gpu.bf16_flop_s / gpu.bandwidth_bytes_s <= 450
    if gpu.fp8_flop_s is not None:
        assert gpu.fp8_flop_s / gpu.bf16_flop_s == pytest.approx(2, rel=0.03)


def test_names_are_found_in_any_case_and_unknown_ones_name_the_nearest() -> None:
    assert find_gpu("H100-SXM").name == "h100-sxm"
    with pytest.raises(DetokbenchError, match="did you mean 'h200'") as error:
        find_gpu("h2000")
    assert error.value.exit_code == ExitCode.USAGE
    with pytest.raises(DetokbenchError, match="known are: h100-sxm"):
        find_gpu("abacus")


def test_devices_are_recognised_by_the_drivers_name() -> None:
    names = [name for gpu in known_gpus() for name in gpu.device_names]
    assert len(set(names)) == len(names)
    h200 = gpu_of_device("NVIDIA H200")
    assert h200 is not None
    assert h200.name == "h200"
    assert gpu_of_device("Some other device") is None
