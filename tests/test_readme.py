"""The README shows what the tool prints, and its commands are the ones that CI runs."""

import re
import runpy
from pathlib import Path

from detokbench.paths import load_path_class, path_names
from detokbench.verify.case_results import check_case
from detokbench.verify.stream import Runner
from detokbench.workload.cases import load_cases, shipped_cases
from tests.streaming import vocabulary

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_outputs_shown_are_those_of_the_reference_records():
    tool = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    assert len(tool["BLOCK"].findall(README)) == 6
    assert len(tool["PRINTED"].findall(README)) == 2
    assert tool["with_output"](README) == README, "run: python benchmarks/readme.py"


def test_lines_of_a_longer_output_are_among_its_lines(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    tool = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    found = re.findall(
        r"<!-- lines of: (.+?) -->\n```text\n(.*?)```\n<!-- end of lines -->", README, re.DOTALL
    )
    assert found
    for command, lines in found:
        printed = tool["output_of"](command).splitlines()
        assert [line for line in lines.splitlines() if line not in printed] == []


def test_both_commands_are_marked_for_ci():
    for marker in ("measure", "tests"):
        assert re.search(rf"<!-- {marker} -->\n```sh\npython3 -m venv .*\n```", README)


def test_every_file_the_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_options_named_in_the_readme_exist(capsys):
    from detokbench.cli import main

    measuring = ("measure-c", "sweep", "tail-str", "time-step", "pipeline", "probe", "encode")
    for command in (*measuring, "verify", "trace", "audit"):
        main([command, "--help"])
        known = capsys.readouterr().out
        lines = re.findall(rf"detokbench {command} [^`\n]*", README)
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


def test_the_case_of_the_readme_loads_and_is_as_it_says(tmp_path, llama3):
    (example,) = re.findall(r"```toml\n(\[\[case\]\].*?)```", README, flags=re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(example, encoding="utf-8")
    (case,) = load_cases(path)
    runners = [Runner(load_path_class(name), llama3) for name in path_names()]
    results = [check_case(case, runner, llama3) for runner in runners]
    differ = {result.path for result in results if result.verdict in ("differs", "error")}
    assert differ == set(case.differ) == {"fast"}
    assert [r.verdict for r in results if r.path == "byte-table"] == ["pass"]


def test_what_is_said_to_be_found_is_found():
    """Each path that the table of findings traces by a case gets that case wrong."""
    cases = {case.name: case for case in shipped_cases()}
    rows = re.findall(r"^\|.*`detokbench trace (\S+) (--case .*)\|$", README, flags=re.MULTILINE)
    assert len(rows) > 15
    for path, shown in rows:
        for name in re.findall(r"--case ([\w-]+)", shown):
            on = vocabulary(cases[name].vocabulary)
            result = check_case(cases[name], Runner(load_path_class(path), on), on)
            assert result.verdict in {"differs", "error"}, (path, name)
            assert path in cases[name].differ
