"""The command line as a user meets it: help, versions, listings, and what bad input gets."""

import subprocess
import sys
from pathlib import Path

import pytest

from detokbench import __version__
from detokbench.cli import main
from detokbench.errors import DetokbenchError, ExitCode

HEAVY = ("transformers", "tokenizers", "torch", "matplotlib", "numpy", "mistral_common", "rich")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["measure-c", "--help"],
        ["time-step", "--help"],
        ["sweep", "--help"],
        ["encode", "--help"],
        ["tail-str", "--help"],
        ["trace", "--help"],
        ["audit", "--help"],
        ["probe", "--help"],
        ["plot", "--help"],
        ["report", "--help"],
        ["show", "--help"],
        ["vocab", "--help"],
    ],
)
def test_help_and_version_load_nothing_heavy(arguments):
    code = (
        "import sys\n"
        "from detokbench.cli import main\n"
        f"assert main({arguments!r}) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"detokbench {__version__}\n"


def test_no_arguments_show_the_help_as_a_usage_error(capsys):
    assert main([]) == ExitCode.USAGE
    assert "measure-c" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure-c", "--batch", "0"], "--batch: '0' must lie between 1 and"),
        (["measure-c", "--batch", ""], "--batch"),
        (["measure-c", "--batch", "1,,2"], "--batch: '1,,2' has an empty part"),
        (["measure-c", "--batch", "8..1"], "runs backwards"),
        (["measure-c", "--paths", "fats"], "unknown path 'fats'; did you mean 'fast'?"),
        (["measure-c", "--paths", ""], "--paths: '' has an empty part"),
        (["measure-c", "--paths", "fast,"], "--paths: 'fast,' has an empty part"),
        (["measure-c", "--vocab", "x/y/tokenizer.json"], "there is no vocabulary file"),
        (["measure-c", "--scenario", "./none.toml"], "there is no scenario file './none.toml'"),
        (["measure-c", "--vocab", "llama3"], "unknown vocabulary 'llama3'; did you mean 'llama-3'"),
        (["measure-c", "--scenario", "llama3-chatt"], "did you mean 'llama3-chat'?"),
        (["measure-c", "--quick", "--rigorous"], "exclude each other"),
        (["measure-c", "--prompt-len", "-1"], "--prompt-len"),
        (["measure-c", "--no-such"], "--no-such"),
        (["measure"], "measure"),
        (["measure-c", "--scenario", "x" * 300], "too long"),
        (["measure-c", "--vocab", "x" * 300], "too long"),
        (["measure-c", "--out", "x" * 300], "--out: a name in it has more than 200 bytes"),
        (["measure-c", "--out", "x" * 220 + ".json"], "--out: a name in it has more than 200"),
        (["time-step", "--model", "x" * 300], "too long"),
    ],
)
def test_wrong_options_get_one_line_and_exit_code_2(capsys, arguments, message):
    assert main(arguments) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert len(printed.err.strip().splitlines()) == 1


def test_an_unwritable_results_folder_is_said_before_anything_runs(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "results")
    assert main(["measure-c", "--out", out]) == ExitCode.BROKEN_SETUP
    assert "cannot write results" in capsys.readouterr().err


def test_tracebacks_are_for_debug_only(capsys):
    assert main(["measure-c", "--batch", "0"]) == ExitCode.USAGE
    assert "Traceback" not in capsys.readouterr().err
    assert main(["measure-c", "--batch", "0", "--debug"]) == ExitCode.USAGE
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (DetokbenchError("no", ExitCode.INCONCLUSIVE), ExitCode.INCONCLUSIVE),
        (RuntimeError("a bug"), ExitCode.BROKEN_SETUP),
    ],
)
def test_what_ends_a_command_decides_the_exit_code(monkeypatch, capsys, raised, code):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("detokbench.vocab.registry.known_vocabularies", fail)
    monkeypatch.setattr("detokbench.commands.vocab.known_vocabularies", fail)
    assert main(["vocab", "list"]) == code
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_listings(capsys):
    assert main(["vocab", "list"]) == 0
    assert "128,256" in capsys.readouterr().out
    assert main(["paths", "list"]) == 0
    assert "byte-table" in capsys.readouterr().out
    assert main(["scenario", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("llama3-chat", "llama3-multilingual", "mistral-slow"))


def test_a_reader_that_leaves_is_no_error():
    command = f"{sys.executable} -m detokbench paths list | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", [["paths", "list"], ["scenario", "list"], ["--help"]])
def test_standard_output_that_takes_nothing_is_said_in_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "detokbench", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    says = "detokbench: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (ExitCode.BROKEN_SETUP, says)
