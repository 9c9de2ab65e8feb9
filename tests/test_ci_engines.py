"""The script that holds the package against real engines: what of it can be checked without them.

It is run by hand or by a CI of its own, since it builds two environments.
"""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from detokbench.paths.installed_engine import TRIED

CI = Path(__file__).parent.parent / ".ci"
SCRIPT = (CI / "engines").read_text()


def requirements(name):
    lines = (CI / name).read_text().splitlines()
    return {r.name: r for r in map(Requirement, filter(None, (x.split("#")[0] for x in lines)))}


def test_it_can_be_run():
    assert os.access(CI / "engines", os.X_OK)
    subprocess.run(["bash", "-n", str(CI / "engines")], check=True)


def test_it_tries_every_front_end_of_ours():
    (listed,) = re.findall(r"for front_end in (.*); do", SCRIPT)
    project = tomllib.loads((CI.parent / "pyproject.toml").read_text())["project"]
    assert listed.split() == list(project["entry-points"]["detokbench.frontends"])


@pytest.mark.parametrize("engine", sorted(TRIED))
def test_its_engines_are_of_a_version_that_was_tried(engine):
    pinned = requirements(f"{engine}.no-deps.txt")[engine]
    assert str(pinned.specifier).removeprefix("==") in TRIED[engine]


@pytest.mark.parametrize("engine", sorted(TRIED))
def test_no_package_is_in_both_lists_of_an_engine(engine):
    alone, others = requirements(f"{engine}.no-deps.txt"), requirements(f"{engine}.txt")
    assert others
    assert not set(alone) & set(others)
    assert all(str(requirement.specifier).startswith("==") for requirement in alone.values())
