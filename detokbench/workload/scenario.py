"""Scenarios: what is run, as a TOML file.

A key that is unknown or of the wrong type is refused by its path in the file. Counts may be
written in the grammar of the command line (``"1k"``, ``"1..256"``).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import no_such, parse_count, parse_count_list
from detokbench.stops.validation import refuse_empty_stop

DEFAULT_SCENARIO = "llama3-chat"


class FlagsTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The table ``[flags]``: how special tokens are rendered, with both engines' defaults."""

    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True


class ScenarioFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A scenario as it stands in its file."""

    title: str
    vocabulary: str
    texts: list[str]
    prompt_len: int | str = 128
    batch: int | str | list[int] = "1,32,256"
    ids_per_step: int | str = 1
    admit_prompt_len: int | str | list[int] = "128,1k,8k,32k"
    stop: list[str] = []
    flags: FlagsTable = FlagsTable()


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with its numbers worked out; stored in every record.

    ``texts`` are names of shipped texts or file names; row ``i`` takes its text from
    ``texts[i % len(texts)]``. ``prompt_len``, ``ids_per_step`` and ``admit_prompt_lens`` count
    token ids, ``batches`` sequences.
    """

    name: str
    title: str
    vocabulary: str
    texts: list[str]
    prompt_len: int
    batches: list[int]
    ids_per_step: int
    admit_prompt_lens: list[int]
    stop: list[str]
    flags: FlagsTable


def scenario_names() -> list[str]:
    """Names of the shipped scenarios."""
    return sorted(path.stem for path in scenario_folder().glob("*.toml"))


def load_scenario(name: str) -> tuple[Scenario, Path]:
    """A shipped scenario by name, or a TOML file; and the folder its texts are relative to.

    Raises DetokbenchError with exit code 2 and the key's path for anything that does not fit.
    """
    path = scenario_folder() / f"{name}.toml"
    if not path.is_file():
        path = Path(name)
    if not path.is_file():
        raise usage_error(no_such("scenario", name, scenario_names()))
    return _resolve(path.stem, _read(path), path.name), path.parent


def override(
    scenario: Scenario,
    vocabulary: str | None = None,
    batches: list[int] | None = None,
    prompt_len: int | None = None,
    ids_per_step: int | None = None,
    stop: list[str] | None = None,
) -> Scenario:
    """The scenario with what the command line says in place of what its file says."""
    given = {
        "vocabulary": vocabulary,
        "batches": batches,
        "prompt_len": prompt_len,
        "ids_per_step": ids_per_step,
        "stop": stop,
    }
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    return msgspec.structs.replace(scenario, **changes)


def scenario_folder() -> Path:
    """Scenarios lie inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_scenarios"
    return installed if installed.is_dir() else package.parent / "scenarios"


def _read(path: Path) -> ScenarioFile:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), ScenarioFile)
    except tomllib.TOMLDecodeError as error:
        raise usage_error(f"scenario {path.name} is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise usage_error(f"scenario {path.name}: {_name_the_key(str(error))}") from error
    except UnicodeDecodeError as error:
        raise usage_error(f"scenario {path.name} is not UTF-8: {error.reason}") from error
    except OSError as error:
        raise DetokbenchError(f"cannot read the scenario {path.name}: {error.strerror}") from error


def _name_the_key(message: str) -> str:
    """``Expected `int`, got `str` - at `$.batch` `` → ``batch: expected int, got str``."""
    what, _, where = message.partition(" - at ")
    key = where.strip("`").removeprefix("$").removeprefix(".")
    what = what.replace("`", "").replace("Object contains", "has an")
    return f"{key}: {what[0].lower()}{what[1:]}" if key else what


def _resolve(name: str, file: ScenarioFile, file_name: str) -> Scenario:
    where = f"scenario {file_name}"
    if not file.texts:
        raise usage_error(f"{where}: texts: expected at least one text")
    for position, stop in enumerate(file.stop):
        refuse_empty_stop(stop, f"{where}: stop[{position}]")
    return Scenario(
        name=name,
        title=file.title,
        vocabulary=file.vocabulary,
        texts=file.texts,
        prompt_len=_count(file.prompt_len, f"{where}: prompt_len"),
        batches=_counts(file.batch, f"{where}: batch"),
        ids_per_step=_count(file.ids_per_step, f"{where}: ids_per_step"),
        admit_prompt_lens=_counts(file.admit_prompt_len, f"{where}: admit_prompt_len"),
        stop=file.stop,
        flags=file.flags,
    )


def _count(value: int | str, what: str) -> int:
    return parse_count(str(value), what)


def _counts(value: int | str | list[int], what: str) -> list[int]:
    if isinstance(value, list):
        return parse_count_list(",".join(map(str, value)), what)
    return parse_count_list(str(value), what)
