"""Cases: streams with the right answer, and the paths that are known to give another.

Those that come with the package make faults from public reports again, each with the smallest
input that shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from detokbench.paths.protocol import Flags
from detokbench.stops.request import StopRequest
from detokbench.workload.case_checks import check_case_file
from detokbench.workload.case_file import (
    CaseTable,
    End,
    ExpectTable,
    Places,
    RowTable,
    read_case_file,
)
from detokbench.workload.scenario import scenario_folder

Encode = Callable[[str], list[int]]
"""Text → ids, with no special tokens added."""

StepSize = int | Literal["all"]
"""Ids a step: a number, or the whole output in one step."""


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One stream of a case, as ids.

    ``output_ids`` may hold numbers that are no ids, and things that are no numbers. ``expect`` is
    None where the case asks for nothing beyond the laws.
    """

    prompt_ids: list[int]
    output_ids: list[Any]
    flags: Flags
    stops: StopRequest
    end: End
    expect: ExpectTable | None


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    ``step_sizes`` is empty where the case leaves them to the caller. ``differ`` has the paths
    known to give something else, each with what that is, in words. ``place`` says where the case
    stands, for messages.
    """

    name: str
    title: str
    report: str
    vocabulary: str
    step_sizes: tuple[StepSize, ...]
    differ: dict[str, str]
    tables: tuple[RowTable, ...]
    file_name: str
    place: str

    def rows(self, encode: Encode) -> list[CaseRow]:
        """The streams of the case, to be run as one batch; ``encode`` is the vocabulary's.

        Prompt and output are encoded apart. Whether their ids spell the text again is not looked
        at: some vocabularies cannot.
        """
        return [_row(table, encode) for table in self.tables]


def load_cases(path: str | Path) -> list[Case]:
    """The cases of a file.

    Raises DetokbenchError: exit code 2, with the line and the key, for what cannot be right; 5
    for a file that cannot be read.
    """
    file, places = read_case_file(Path(path))
    check_case_file(file, places)
    return [_case(table, index, places) for index, table in enumerate(file.case)]


def shipped_cases() -> list[Case]:
    """The cases that come with the package, by file and in the order of each file."""
    paths = sorted((scenario_folder() / "cases").glob("*.toml"))
    return [case for path in paths for case in load_cases(path)]


def case_names() -> list[str]:
    """Names of the shipped cases."""
    return [case.name for case in shipped_cases()]


def _case(table: CaseTable, index: int, places: Places) -> Case:
    sizes = table.ids_per_step
    return Case(
        name=table.name,
        title=table.title,
        report=table.report,
        vocabulary=table.vocabulary,
        step_sizes=sizes if isinstance(sizes, tuple) else (sizes,),  # type: ignore[arg-type]
        differ=table.differ,
        tables=table.row or (table,),
        file_name=places.file_name,
        place=places.place(("case", index)),
    )


def _row(table: RowTable, encode: Encode) -> CaseRow:
    return CaseRow(
        prompt_ids=_ids(table.prompt, encode),
        output_ids=_ids(table.output, encode),
        flags=Flags(table.skip_special_tokens, table.spaces_between_special_tokens),
        stops=StopRequest(
            strings=table.stop,
            regexes=table.stop_regex,
            stop_ids=frozenset(table.stop_ids),
            min_tokens=table.min_tokens,
            keep_stop=table.keep_stop,
        ),
        end=table.end,
        expect=table.expect,
    )


def _ids(given: str | tuple[Any, ...], encode: Encode) -> list[Any]:
    return encode(given) if isinstance(given, str) else list(given)
