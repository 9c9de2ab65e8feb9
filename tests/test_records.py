"""Records: written whole, never over another, readable by anyone, silent about the user."""

import errno
import getpass
import json
import os
import socket

import msgspec
import pandas
import pytest

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.records.provenance import command_line, file_name
from detokbench.records.schema import SCHEMA_VERSION, Record, Row
from detokbench.records.store import encode, place_for, read_record, write_record
from detokbench.report.output import keep

COLUMNS = (
    "path batch metric unit median ci_low ci_high samples vocab prompt_len ids_per_step "
    "context stream_interval threads"
)
CREATED = "2026-01-02T03:04:05Z"


def make_record(**changes):
    row = Row(
        path="fast",
        batch=32,
        metric="per_token",
        median=9.5e-7,
        ci_low=9.4e-7,
        ci_high=9.6e-7,
        mad=1e-9,
        samples=[9.4e-7, 9.5e-7, None],
        vocab="llama-3",
    )
    fields = {
        "kind": "measure-c",
        "created": CREATED,
        "command": ["detokbench", "measure-c"],
        "detokbench": "0.1.0",
        "scenario": {},
        "vocabulary": {"name": "llama-3"},
        "settings": {},
        "machine": {},
        "packages": {},
        "rows": [row],
    }
    return Record(**{**fields, **changes})


def test_round_trip(tmp_path):
    record = make_record()
    path = write_record(record, tmp_path / "r.json")
    assert read_record(path) == record


def test_a_row_has_all_columns_of_the_tidy_table_null_where_they_do_not_apply():
    rows = json.loads(encode(make_record()))["rows"]
    table = pandas.DataFrame(rows)
    for column in COLUMNS.split():
        assert column in table.columns
    assert rows[0]["context"] is None
    assert rows[0]["unit"] == "s"


def test_a_record_is_json_with_a_row_a_line():
    text = encode(make_record()).decode()
    assert sum('"path":"fast"' in line for line in text.splitlines()) == 1
    assert json.loads(text)["schema_version"] == SCHEMA_VERSION


def test_nothing_is_ever_overwritten(tmp_path):
    first = write_record(make_record(), tmp_path / "r.json")
    second = write_record(make_record(kind="other"), tmp_path / "r.json")
    assert second.name == "r-2.json"
    assert read_record(first).kind == "measure-c"


def test_no_temporary_file_is_left(tmp_path):
    write_record(make_record(), tmp_path / "r.json")
    write_record(make_record(), tmp_path / "r.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r-2.json", "r.json"]


def test_an_out_file_that_exists_is_refused_before_measuring(tmp_path):
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    with pytest.raises(DetokbenchError, match="never overwritten") as caught:
        place_for("measure-c", "llama-3", CREATED, str(taken))
    assert caught.value.exit_code == ExitCode.USAGE
    assert taken.read_text() == "mine"


def test_an_out_folder_gets_a_name_of_kind_vocabulary_and_time(tmp_path):
    place = place_for("measure-c", "owner/model", CREATED, str(tmp_path / "new"))
    assert place.name == "measure-c-owner-model-20260102T030405Z.json"
    assert place.parent.is_dir()


def test_a_long_name_leaves_room_for_what_is_added_to_it(tmp_path):
    place = place_for("measure-c", "é" * 127, CREATED, str(tmp_path))
    assert len(place.name.encode()) <= 200
    assert place.name.endswith("é-20260102T030405Z.json")
    write_record(make_record(), place)
    assert write_record(make_record(), place).stem.endswith("-2")


@pytest.mark.parametrize("out", ["x" * 201, "x" * 201 + "/r.json", "x" * 196 + ".json"])
def test_an_out_name_that_is_too_long_is_refused_before_measuring(tmp_path, out):
    with pytest.raises(DetokbenchError, match="more than 200 bytes") as caught:
        place_for("measure-c", "llama-3", CREATED, str(tmp_path / out))
    assert caught.value.exit_code == ExitCode.USAGE


def test_standard_output_that_is_full_keeps_the_record(tmp_path):
    def show():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    stored = []
    with pytest.raises(
        DetokbenchError, match="cannot write to standard output: No space"
    ) as caught:
        keep(make_record(), show, lambda record: stored.append(record) or tmp_path, None)
    assert caught.value.exit_code == ExitCode.BROKEN_SETUP
    assert len(stored) == 1


def test_a_folder_that_cannot_be_written_is_a_broken_setup(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DetokbenchError, match="--out") as caught:
        place_for("measure-c", "llama-3", CREATED, str(tmp_path / "file" / "results"))
    assert caught.value.exit_code == ExitCode.BROKEN_SETUP


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1}', b'{"schema_version": 1}'])
def test_what_is_no_record_is_refused(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(DetokbenchError, match=r"r\.json is not a detokbench record") as caught:
        read_record(path)
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_newer_schema_is_refused_by_its_number(tmp_path):
    path = tmp_path / "r.json"
    fields = msgspec.to_builtins(make_record())
    path.write_bytes(msgspec.json.encode({**fields, "schema_version": SCHEMA_VERSION + 1}))
    with pytest.raises(DetokbenchError, match=f"schema {SCHEMA_VERSION + 1}"):
        read_record(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DetokbenchError, match="cannot read the record"):
        read_record(tmp_path / "none.json")


def test_command_lines_lose_their_folders():
    line = [
        "/usr/bin/detokbench",
        "measure-c",
        "--out=/home/me/x.json",
        "--vocab",
        "/data/m/tok.json",
    ]
    assert command_line(line) == ["detokbench", "measure-c", "--out=x.json", "--vocab", "tok.json"]


def test_a_hub_id_and_a_list_are_no_paths():
    assert file_name("owner/model") == "owner/model"
    assert file_name("1,32,256") == "1,32,256"
    assert file_name("1..512") == "1..512"
    assert file_name("/a/b/model") == "model"


@pytest.mark.parametrize("text", ["x" * 300, "é" * 5000, "x" * 300 + "/y"])
def test_a_text_that_is_too_long_for_a_path_is_none(text):
    assert file_name(text) == text
    assert command_line(["detokbench", "probe", "--stop", text])[-1] == text


def test_machine_facts_name_neither_user_nor_host():
    from detokbench.bench.machine import machine_facts

    text = json.dumps(machine_facts())
    assert socket.gethostname() not in text or len(socket.gethostname()) < 3
    assert getpass.getuser() not in text.split('"')
