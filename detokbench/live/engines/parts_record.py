"""The record of ``frontend-parts``: details, and flat rows of them."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import msgspec

from detokbench import __version__
from detokbench.bench.machine import disturbances, package_versions
from detokbench.bench.run import without_folders
from detokbench.records.frontend_parts import PartsDetails
from detokbench.records.schema import Record, Row
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.scenario import Scenario


def parts_record(
    details: PartsDetails,
    scenario: Scenario,
    vocabulary: Vocabulary,
    machine: dict[str, object],
    created: str,
    command: list[str],
) -> Record:
    """``machine`` is how it was before the run."""
    return Record(
        kind="frontend-parts",
        created=created,
        command=command,
        detokbench=__version__,
        scenario=msgspec.to_builtins(without_folders(scenario, vocabulary.name)),
        vocabulary=dict(vocabulary.facts),
        settings={
            "rounds": len(details.at[0].whole_rounds_s),
            "processes_finished": 1,
            "window_s": details.window_s,
            "gc": True,
            "pinned": False,
        },
        machine=machine,
        packages={**package_versions(), details.engine: details.version},
        warnings=list(disturbances(machine)),
        rows=list(_rows(details, vocabulary.name)),
        details=msgspec.to_builtins(details),
    )


def _rows(details: PartsDetails, vocabulary: str) -> Iterator[Row]:
    """``call`` is ``part`` or ``whole``, ``role`` the part."""
    for at in details.at:
        measured = [("part", part.name, part.rounds_s) for part in at.parts]
        for call, role, rounds_s in [*measured, ("whole", "http", at.whole_rounds_s)]:
            yield Row(
                path=details.engine,
                batch=at.streams,
                metric="cpu_per_token",
                median=median(rounds_s),
                ci_low=None,
                ci_high=None,
                mad=None,
                samples=list(rounds_s),
                vocab=vocabulary,
                call=call,
                engine=details.engine,
                streams=at.streams,
                t_step=details.t_step_s,
                role=role,
            )
