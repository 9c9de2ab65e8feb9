"""The temporary folder of a run: who may have it, and when it goes."""

import fcntl
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from detokbench.errors import DetokbenchError
from detokbench.run_folder import RunFolder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_goes_with_its_run(here):
    folder = RunFolder()
    (Path(folder.name) / "workload").write_text("ids")
    folder.close()
    assert list(here.iterdir()) == []


def test_one_that_is_in_use_is_left_alone(here):
    first, second = RunFolder(), RunFolder()
    assert len(list(here.iterdir())) == 2
    first.close()
    second.close()


def test_what_a_killed_run_left_goes_at_the_next_start(here):
    code = (
        "import os, tempfile\n"
        f"tempfile.tempdir = {str(here)!r}\n"
        "from detokbench.run_folder import RunFolder\n"
        "folder = RunFolder()\n"
        "open(folder.name + '/workload', 'w').close()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(here.iterdir())) == 1
    RunFolder().close()
    assert list(here.iterdir()) == []


def test_folders_that_are_none_of_ours_stay(here):
    (here / "detokbench-notes").mkdir()
    (here / "elsewhere").mkdir()
    (here / "elsewhere" / "in-use").touch()
    (here / "detokbench-link").symlink_to(here / "elsewhere")
    (here / "detokbench-file").touch()
    RunFolder().close()
    assert len(list(here.iterdir())) == 4
    assert (here / "elsewhere" / "in-use").exists()


def test_the_lock_is_there_from_the_first_moment_that_the_folder_can_be_judged(here):
    folder = RunFolder()
    with (Path(folder.name) / "in-use").open("rb") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder.close()


@pytest.mark.parametrize("name", ["caf\udce9", "none"])
def test_no_place_for_temporary_files_is_said_in_one_line(here, monkeypatch, name):
    monkeypatch.setattr(tempfile, "tempdir", str(here / name))
    with pytest.raises(DetokbenchError, match="set TMPDIR") as error:
        RunFolder()
    assert "\n" not in str(error.value)
