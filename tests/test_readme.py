"""The README shows what the tool prints, and its commands are the ones that CI runs."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_outputs_shown_are_those_of_the_reference_records():
    tool = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    assert len(tool["BLOCK"].findall(README)) == 4
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

    for command in ("measure-c", "sweep", "tail-str", "time-step"):
        main([command, "--help"])
        known = capsys.readouterr().out
        lines = re.findall(rf"^detokbench {command} .*$", README, flags=re.MULTILINE)
        options = {option for line in lines for option in re.findall(r" (--[a-z-]+)", line)}
        assert options
        assert [option for option in options if option not in known] == []


def test_the_path_of_the_readme_is_a_path(llama3):
    code = re.search(r"```python\n(class EchoPath.*?)```", README, flags=re.DOTALL)
    namespace: dict[str, type] = {}
    exec(code[1], namespace)
    path = namespace["EchoPath"](llama3)
    rows = path.open([[], []])
    assert path.step(rows, [[9906], [1917]]) == ["Hello", " world"]
    assert path.open([[]]) == [2]
