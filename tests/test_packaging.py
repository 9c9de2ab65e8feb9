"""What a wheel brings along: a user of it has no checkout beside it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return set(zipfile.ZipFile(next(folder.glob("*.whl"))).namelist())


def test_the_wheel_has_every_scenario_every_case_and_every_text(wheel_names):
    scenarios = {
        f"detokbench/_{path.relative_to(ROOT)}" for path in ROOT.glob("scenarios/**/*.toml")
    }
    texts = {
        str(path.relative_to(ROOT)) for path in ROOT.glob("detokbench/workload/texts/**/*.txt")
    }
    assert len(scenarios) >= 12
    assert len(texts) >= 18
    assert scenarios | texts <= wheel_names


def test_the_wheel_is_typed_and_has_no_tests(wheel_names):
    assert "detokbench/py.typed" in wheel_names
    assert not [name for name in wheel_names if name.startswith(("tests/", "benchmarks/"))]
