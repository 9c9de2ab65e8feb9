"""What types cannot say of a case: values that no stream could have, or that answer nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from detokbench.errors import DetokbenchError
from detokbench.vocab.registry import check_vocabulary_name
from detokbench.workload.case_file import CaseFile, CaseTable, ExpectTable, Places, RowTable
from detokbench.workload.toml_lines import KeyPath

_NO_ROW = RowTable()


def check_case_file(file: CaseFile, places: Places) -> None:
    """Raises a usage error, with the line, for the first case that cannot be right."""
    if not file.case:
        places.refuse(("case",), "expected at least one case")
    names: set[str] = set()
    for index, case in enumerate(file.case):
        where: KeyPath = ("case", index)
        for key in ("name", "title"):
            if not getattr(case, key).strip():
                places.refuse((*where, key), "expected some text")
        if case.name in names:
            places.refuse((*where, "name"), f"there is a case '{case.name}' before this one")
        names.add(case.name)
        _check_case(case, where, places)


def _check_case(case: CaseTable, where: KeyPath, places: Places) -> None:
    try:
        check_vocabulary_name(case.vocabulary)
    except DetokbenchError as error:
        places.refuse((*where, "vocabulary"), str(error))
    _check_ids_per_step(case, (*where, "ids_per_step"), places)
    if not case.row:
        _check_row(case, where, places)
        return
    for key in RowTable.__struct_fields__:
        if getattr(case, key) != getattr(_NO_ROW, key):
            places.refuse((*where, key), "the case has rows, so this belongs into one of them")
    for position, row in enumerate(case.row):
        _check_row(row, (*where, "row", position), places)


def _check_ids_per_step(case: CaseTable, where: KeyPath, places: Places) -> None:
    given = case.ids_per_step
    for number in given if isinstance(given, tuple) else (given,):
        if isinstance(number, str) and number != "all":
            places.refuse(where, f"expected a number or 'all', got '{number}'")
        if isinstance(number, int) and number < 1:
            places.refuse(where, f"expected 1 or more, got {number}")


def _check_row(row: RowTable, where: KeyPath, places: Places) -> None:
    if not row.output:
        places.refuse((*where, "output"), "expected a text or a list of ids that is not empty")
    for position, token_id in enumerate(row.output):
        if isinstance(token_id, list | dict):
            kind = "table" if isinstance(token_id, dict) else "list"
            places.refuse((*where, "output", position), f"expected an id or the like, got {kind}")
    for position, stop_id in enumerate(_stop_ids(row)):
        if type(stop_id) is not int or not -(1 << 63) <= stop_id < 1 << 63:
            key = "stop_ids" if position < len(row.stop_ids) else "output"
            places.refuse((*where, key), f"{stop_id!r} is no id to stop at")
    if row.min_tokens < 0:
        places.refuse((*where, "min_tokens"), f"expected 0 or more, got {row.min_tokens}")
    if "" in row.stop:
        places.refuse((*where, "stop"), "an empty stop string stops at once")
    for pattern in row.stop_regex:
        try:
            re.compile(pattern)
        except re.error as error:
            places.refuse((*where, "stop_regex"), f"'{pattern}' is not valid: {error}")
    if row.expect is not None:
        _check_expect(row, row.expect, (*where, "expect"), places)


def _stop_ids(row: RowTable) -> tuple[Any, ...]:
    """The ids that may stop a row: those named, and its last where it ends at one."""
    last = row.output[-1:] if row.end == "stop-id" and not isinstance(row.output, str) else ()
    return (*row.stop_ids, *last)


def _check_expect(row: RowTable, expect: ExpectTable, where: KeyPath, places: Places) -> None:
    if expect == ExpectTable():
        places.refuse(where, "expected at least one of text, deltas, stop, kept_ids")
    _check_expected_stop(row, expect, (*where, "stop"), places)
    if isinstance(row.output, str):
        return
    ids = row.output
    kept = expect.kept_ids
    if kept is not None and not _is_prefix(kept, ids):
        places.refuse((*where, "kept_ids"), "these ids are not the beginning of the output")
    if expect.deltas is not None:
        _check_deltas(expect.deltas, row, len(ids), (*where, "deltas"), places)


def _check_expected_stop(
    row: RowTable, expect: ExpectTable, where: KeyPath, places: Places
) -> None:
    fired = expect.stop
    if fired is None or fired is False:
        return
    if fired is True:
        places.refuse(where, "expected the stop that fires, or false for none")
    possible: Sequence[Any] = (*row.stop, *row.stop_regex, *row.stop_ids)
    if row.end == "stop-id":
        possible = (*possible, row.output[-1])
    if fired not in possible:
        places.refuse(where, f"{fired!r} is not one of the stops of this stream")


def _check_deltas(
    deltas: tuple[str, ...], row: RowTable, ids: int, where: KeyPath, places: Places
) -> None:
    """One delta for each id and one for the end; fewer where a stop may end the stream."""
    most = ids if row.end == "open" else ids + 1
    may_stop = row.stop or row.stop_regex or row.stop_ids
    if len(deltas) > most or (len(deltas) < ids and not may_stop):
        places.refuse(where, f"expected a text for each of the {ids} ids, got {len(deltas)}")


def _is_prefix(kept: tuple[Any, ...], ids: tuple[Any, ...]) -> bool:
    # By type as well: 1, 1.0 and true are equal in Python and different ids here.
    return len(kept) <= len(ids) and list(map(repr, kept)) == list(map(repr, ids[: len(kept)]))
