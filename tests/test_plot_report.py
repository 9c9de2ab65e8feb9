"""``show``, ``plot`` and ``report``: records on the screen, as charts and as a page, once more."""

import io
import re
import shutil
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from fidelity_records import fidelity_record
from frontend_parts_records import parts_record
from frontend_records import frontend_record
from probe_records import probe_record
from rich.console import Console
from rich.table import Table
from rich.text import Text
from verify_records import verify_record

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.records.store import encode, read_record
from detokbench.report.html_console import HtmlConsole, inline_html, table_html
from detokbench.report.kinds import KINDS, kind_of
from detokbench.report.page import NamedRecord, make_page

REFERENCE = Path(__file__).parent.parent / "results" / "reference"
RECORDS = {
    "measure-c": REFERENCE / "measure-c-llama-3.json",
    "sweep": REFERENCE / "sweep-llama-3.json",
    "tail-str": REFERENCE / "tail-str-llama-3.json",
    "time-step": REFERENCE / "time-step-h100-sxm.json",
    "pipeline": REFERENCE / "pipeline-slow.json",
    "encode": REFERENCE / "encode-llama-3.json",
}
_MADE_UP = tempfile.TemporaryDirectory()
RECORDS["verify"] = Path(_MADE_UP.name) / "verify.json"
RECORDS["verify"].write_bytes(encode(verify_record()))
RECORDS["probe"] = Path(_MADE_UP.name) / "probe.json"
RECORDS["probe"].write_bytes(encode(probe_record()))
RECORDS["fidelity"] = Path(_MADE_UP.name) / "fidelity.json"
RECORDS["fidelity"].write_bytes(encode(fidelity_record()))
RECORDS["frontend"] = Path(_MADE_UP.name) / "frontend.json"
RECORDS["frontend"].write_bytes(encode(frontend_record()))
RECORDS["frontend-parts"] = Path(_MADE_UP.name) / "frontend-parts.json"
RECORDS["frontend-parts"].write_bytes(encode(parts_record()))


def altered(path, kind="measure-c", **changes):
    """A record like a reference one but for some fields, stored under a path."""
    record = msgspec.structs.replace(read_record(RECORDS[kind]), **changes)
    path.write_bytes(encode(record))
    return path


class Page(HTMLParser):
    """What a page holds; fails where tags do not match."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def values(self, *names):
        return [value for name, value in self.attributes if name in names]


@pytest.fixture(scope="module")
def page_text():
    return make_page([NamedRecord(path.name, read_record(path)) for path in RECORDS.values()])


# --- the registry --------------------------------------------------------------------------


def test_every_kind_has_a_record_here():
    assert RECORDS.keys() == KINDS.keys()
    assert {kind: read_record(path).kind for kind, path in RECORDS.items()} == {k: k for k in KINDS}


@pytest.mark.parametrize("command", [["show"], ["plot"], ["report", "-o", "page.html"]])
def test_an_unknown_kind_is_one_line_and_nothing_is_written(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = altered(tmp_path / "odd.json", kind="time-step", rows=[])
    record.write_text(record.read_text().replace('"kind":"time-step"', '"kind":"horoscope"'))
    assert main([command[0], "odd.json", *command[1:]]) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "'horoscope'" in printed.err
    assert all(kind in printed.err for kind in KINDS)
    assert [path.name for path in tmp_path.iterdir()] == ["odd.json"]


@pytest.mark.parametrize("command", ["show", "plot", "report"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{}", "is not a detokbench record"),
        (b"\x89PNG", "is not a detokbench record"),
        (b'{"schema_version": 99}', "schema 99"),
        (None, "cannot read the record"),
    ],
)
def test_what_is_no_record_is_one_line(command, content, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("x.json").write_bytes(content)
    assert main([command, "x.json"]) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"x.json"}


# --- show ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_show_prints_the_screen_of_the_command(kind, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["show", str(RECORDS[kind])]) == 0
    printed = capsys.readouterr().out
    out = io.StringIO()
    record = read_record(RECORDS[kind])
    kind_of(record).print_screen(record, Console(file=out, width=80))
    assert printed == out.getvalue()
    assert printed.startswith(kind)


# --- plot ----------------------------------------------------------------------------------


def test_every_kind_is_drawn_into_a_folder_and_the_files_are_listed(tmp_path, capsys):
    folder = tmp_path / "new" / "charts"
    assert main(["plot", *map(str, RECORDS.values()), "--out", str(folder)]) == 0
    printed = capsys.readouterr()
    listed = [Path(line) for line in printed.out.splitlines()]
    assert [path.name for path in listed] == [
        f"{record.stem}.{ending}" for record in RECORDS.values() for ending in ("png", "svg")
    ]
    assert printed.err == ""
    for path in listed:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_a_chart_beside_its_record_is_replaced_by_the_same_picture(tmp_path, capsys):
    record = tmp_path / "mine.json"
    shutil.copy(RECORDS["time-step"], record)
    assert main(["plot", str(record)]) == 0
    first = (tmp_path / "mine.svg").read_text()
    assert capsys.readouterr().err == ""
    assert main(["plot", str(record)]) == 0
    assert capsys.readouterr().err == "replaced: mine.png, mine.svg\n"
    assert (tmp_path / "mine.svg").read_text() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.json", "mine.png", "mine.svg"]


def test_a_record_without_anything_to_draw_says_so(tmp_path, capsys):
    record = altered(tmp_path / "empty.json", rows=[])
    assert main(["plot", str(record)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "empty.json: no chart" in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["empty.json"]


def test_two_records_of_one_name_are_not_drawn_over_each_other(tmp_path, capsys):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(RECORDS["time-step"], tmp_path / folder / "same.json")
    records = [str(tmp_path / folder / "same.json") for folder in ("a", "b")]
    out = tmp_path / "charts"
    assert main(["plot", *records, "--out", str(out)]) == ExitCode.USAGE
    assert "several records are named same" in capsys.readouterr().err
    assert not out.exists()
    assert main(["plot", *records]) == 0


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_drawn(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    code = main(["plot", str(RECORDS["time-step"]), "--out", str(tmp_path / "file")])
    assert code == ExitCode.BROKEN_SETUP
    assert "cannot write" in capsys.readouterr().err


# --- report --------------------------------------------------------------------------------


def test_a_page_needs_nothing_but_itself(page_text):
    page = Page(page_text)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert page.values("src") == []
    targets = page.values("href", "xlink:href")
    assert targets
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in targets)
    assert not re.search(r"@import|url\((?!#)", page_text)


def test_names_within_a_page_are_unique_where_they_differ(page_text):
    """Drawings share the shapes of letters, and nothing else."""
    ids = [value for value in Page(page_text).values("id") if re.match(r"[mp][0-9a-f]{10}", value)]
    assert ids
    assert len(ids) == len(set(ids))


def test_a_page_has_contents_facts_charts_and_readings_of_every_record(page_text):
    page = Page(page_text)
    text = " ".join("".join(page.text).split())
    assert page.tags.count("section") == page.tags.count("figure") == len(RECORDS)
    for number, (kind, path) in enumerate(RECORDS.items(), 1):
        record = read_record(path)
        assert f"#record-{number}" in page.values("href")
        assert f"record-{number}" in page.values("id")
        for wanted in (KINDS[kind].title, path.name, " ".join(record.command)):
            assert wanted in text
        for version in record.packages.values():
            assert version in text
        console = HtmlConsole()
        KINDS[kind].print_screen(record, console)
        readings = [block.html for block in console.blocks if block.kind == "reading"]
        assert readings
        assert all(f"<li>{reading}</li>" in page_text for reading in readings)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_the_page_say_what_the_screen_says(kind, page_text):
    out = io.StringIO()
    record = read_record(RECORDS[kind])
    kind_of(record).print_screen(record, Console(file=out, width=160))
    on_page = set("".join(Page(page_text.replace("<", " <")).text).split())
    missing = {word for word in out.getvalue().split() if re.search(r"[0-9]", word)} - on_page
    # Bold and marked words end where the punctuation of a sentence begins.
    assert {word.strip("(),.:;") for word in missing} <= {w.strip("(),.:;") for w in on_page}


def test_one_record_needs_no_contents(tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main(["report", str(RECORDS["time-step"]), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert "nav" not in Page(out.read_text(encoding="utf-8")).tags


def test_a_page_is_never_written_over_a_file(tmp_path, capsys):
    out = tmp_path / "page.html"
    out.write_text("mine")
    assert main(["report", str(RECORDS["time-step"]), "-o", str(out)]) == ExitCode.USAGE
    assert "exists already" in capsys.readouterr().err
    assert out.read_text() == "mine"


def test_the_same_records_give_the_same_page():
    named = [NamedRecord("t.json", read_record(RECORDS["time-step"]))]
    assert make_page(named) == make_page(named)


def test_warnings_and_partial_records_stand_out(tmp_path):
    path = altered(tmp_path / "r.json", warnings=["the fan is loud"], partial=True)
    text = make_page([NamedRecord("r.json", read_record(path))])
    warnings = re.search(r'<ul class="warnings">(.*?)</ul>', text, re.DOTALL)[1]
    assert "the fan is loud" in warnings
    assert "partial: " in warnings


def test_a_record_without_rows_still_makes_a_page(tmp_path):
    path = altered(tmp_path / "r.json", rows=[])
    page = Page(make_page([NamedRecord("r.json", read_record(path))]))
    assert "figure" not in page.tags


def test_what_a_record_quotes_is_never_taken_for_html(tmp_path):
    evil = "<script>alert('x')</script>"
    path = altered(tmp_path / "r.json", command=["detokbench", evil], warnings=[evil], rows=[])
    text = make_page([NamedRecord(f"{evil}.json", read_record(path))])
    assert "<script" not in text
    assert "script" not in Page(text).tags


# --- a screen as HTML ----------------------------------------------------------------------


def test_lines_are_sorted_by_their_marks():
    console = HtmlConsole()
    for line in ("[bold]kind[/] · x", "• it is [so]", "! take care"):
        console.print(line, markup=line.startswith("["), highlight=False)
    assert console.blocks == [
        ("text", "<strong>kind</strong> · x"),
        ("reading", "it is [so]"),
        ("warning", "take care"),
    ]


def test_sources_are_marked_and_bold_ends_where_it_should():
    assert inline_html("4 roofline, unmeasured") == (
        '4 <span class="source modelled">roofline</span>, unmeasured'
    )
    assert inline_html(Text.from_markup("a [bold]b < c[/] d")) == "a <strong>b &lt; c</strong> d"
    assert inline_html("") == ""


def test_a_table_keeps_headers_sides_and_sections():
    table = Table(title="a title")
    table.add_column("\nname")
    table.add_column("two\nlines", justify="right")
    table.add_row(Text("[/x]"), "1")
    table.add_section()
    table.add_row("b", "")
    html = table_html(table)
    Page(html)
    assert "<caption>a title</caption>" in html
    assert '<th scope="col">name</th><th scope="col" class="right">two<br>lines</th>' in html
    assert '<tr><th scope="row">[/x]</th><td class="right">1</td></tr>' in html
    assert html.count("<tbody>") == 2
