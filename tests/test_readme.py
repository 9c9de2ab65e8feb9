"""The README shows what the tool prints, and its commands are the ones that CI runs."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_output_shown_is_that_of_the_reference_record():
    tool = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    assert tool["with_output"](README) == README, "run: python benchmarks/readme.py"


def test_both_commands_are_marked_for_ci():
    for marker in ("measure", "tests"):
        assert re.search(rf"<!-- {marker} -->\n```sh\npython3 -m venv .*\n```", README)


def test_every_file_the_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_options_named_in_the_readme_exist(capsys):
    from detokbench.cli import main

    main(["measure-c", "--help"])
    known = capsys.readouterr().out
    commands = re.findall(r"^detokbench measure-c .*$", README, flags=re.MULTILINE)
    options = {option for line in commands for option in re.findall(r"--[a-z-]+", line)}
    assert options
    assert [option for option in options if option not in known] == []
