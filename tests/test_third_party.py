"""Paths and front ends of a third party, found through their package's entry points.

The classes are those of the README, as a reader would copy them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import third_party

from detokbench.errors import ExitCode

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# The server of the README's front end: the tests' own, with what the README gives it.
SERVER = """
import asyncio, sys
import canned_front_end
port, model, workload, control = sys.argv[1:]
plan = dict(port=int(port), model=model, workload=workload, control=control, mode="")
asyncio.run(canned_front_end._Server(plan).serve())
"""


def code_of_the_readme(first_line):
    """The Python block that has this line."""
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (found,) = [block for block in blocks if first_line in block.splitlines()]
    return found


def detokbench(*arguments, env, cwd):
    command = [sys.executable, "-m", "detokbench", *map(str, arguments)]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)


def searched(env, *folders):
    """The environment in which these folders are searched for modules as well."""
    path = ":".join([env["PYTHONPATH"], *map(str, folders)])
    return {**env, "PYTHONPATH": path, "COLUMNS": "120"}


def registered(folder, group, name, target):
    return searched(third_party.register(folder, group, name, target), ROOT, ROOT / "tests")


# A path


@pytest.fixture
def echo(tmp_path):
    (tmp_path / "echo_module.py").write_text(code_of_the_readme("class EchoPath:"))
    return registered(tmp_path, "detokbench.paths", "echo", "echo_module:EchoPath")


def test_a_path_is_listed_behind_ours(tmp_path, echo):
    done = detokbench("paths", "list", env=echo, cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert names.index("byte-table") < names.index("echo")
    assert "Decode every row's new ids at once." in done.stdout


def test_a_path_is_measured_and_judged_as_ours_are(tmp_path, echo):
    options = ["--paths", "echo,byte-table", "--batch", "2", "--quick", "--no-chart", "--json"]
    done = detokbench("measure-c", *options, env=echo, cwd=tmp_path)
    assert done.returncode == ExitCode.FAILED_CHECK, done.stderr  # it breaks split characters
    verdicts = {one["path"]: one["verdict"] for one in json.loads(done.stdout)["gate"]}
    assert verdicts == {"echo": "fail", "byte-table": "pass"}


def test_a_path_that_cannot_be_imported_is_named_and_the_others_listed(tmp_path):
    env = registered(tmp_path, "detokbench.paths", "gone", "no_such_module:Path")
    done = detokbench("paths", "list", env=env, cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "path 'gone' cannot be imported: ModuleNotFoundError" in " ".join(done.stdout.split())
    assert "byte-table" in done.stdout


# A front end


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "my_front_end.py").write_text(code_of_the_readme("class MyFrontEnd:"))
    (tmp_path / "my_server.py").write_text(SERVER)
    return registered(tmp_path, "detokbench.frontends", "mine", "my_front_end:MyFrontEnd")


def test_a_front_end_is_measured_as_ours_are(tmp_path, mine):
    model = tmp_path / "model"
    exported = detokbench("vocab", "export", "llama-3", model, env=mine, cwd=tmp_path)
    assert exported.returncode == ExitCode.OK, exported.stderr
    done = detokbench(
        "frontend", "--engine", "mine", "--model", model, "--streams", "2", "--t-step", "20ms",
        "--max-tokens", "24", "--quick", "--no-search", "--no-chart", "--json",
        env=mine, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == ExitCode.OK, done.stderr
    details = json.loads(done.stdout)["details"]
    (engine,) = details["engines"]
    assert (engine["name"], engine["version"]) == ("mine", "1.0")
    assert engine["summary"] == "my server, and an engine that plays ids to it"
    (first, *_) = details["runs"]
    assert first["engine"] == "mine"
    assert first["ids"] > 0
    assert first["checked"] > 0
    assert first["wrong"] == 0


def test_its_name_is_among_those_that_can_be_asked_for(tmp_path, mine):
    options = ["--engine", "mime", "--model", tmp_path]
    done = detokbench("frontend", *options, env=mine, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "did you mean 'mine'?" in done.stderr


def test_a_front_end_that_cannot_be_imported_is_named(tmp_path):
    env = registered(tmp_path, "detokbench.frontends", "gone", "no_such_module:FrontEnd")
    options = ["--engine", "gone", "--model", tmp_path]
    done = detokbench("frontend", *options, env=env, cwd=tmp_path)
    assert done.returncode == ExitCode.BROKEN_SETUP
    assert done.stderr.startswith("detokbench: engine 'gone' cannot be imported")
    assert len(done.stderr.splitlines()) == 1
