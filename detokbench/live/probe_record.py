"""The record of a probe, and the exit code that follows from it."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec

from detokbench import __version__
from detokbench.bench.machine import disturbances, package_versions
from detokbench.bench.run import Outcome
from detokbench.errors import ExitCode
from detokbench.live.probe_asked import Asked
from detokbench.live.probe_checks import add_up
from detokbench.live.probe_details import make_details
from detokbench.live.probe_fetch import MOST_OPEN_BYTES
from detokbench.live.probe_load import BOUND_SHARE
from detokbench.live.probe_rows import probe_rows
from detokbench.live.probe_run import Collected
from detokbench.live.probe_secrets import blotted
from detokbench.records.probe import MEASURED, IdCheck, ProbeDetails, probe_details
from detokbench.records.schema import Record
from detokbench.vocab.id_bytes import UnsupportedFamilyError


class ProbeOutcome(Outcome):
    """A record whose exit code follows from how the requests ended."""

    def exit_code(self) -> ExitCode:
        """1 where a request did not end well, and none of its own where Ctrl-C ended the run."""
        code = super().exit_code()
        if code == ExitCode.INTERRUPTED:
            return code
        counts = probe_details(self.record).outcomes
        failed = any(count.outcome not in MEASURED for count in counts)
        return ExitCode.FAILED_CHECK if failed else code


def record_of(asked: Asked, collected: Collected, created: str, command: list[str]) -> ProbeOutcome:
    """Everything about one run."""
    ids, unchecked = _id_check(asked, collected)
    details = make_details(asked, collected, ids)
    machine = collected.machine
    found = [*collected.warnings, *unchecked]
    record = Record(
        kind="probe",
        created=created,
        command=command,
        detokbench=__version__,
        partial=collected.error is not None,
        scenario={"name": ", ".join(dict.fromkeys(prompt.name for prompt in asked.prompts))},
        vocabulary={} if asked.vocabulary is None else asked.vocabulary.facts,
        settings=_settings(asked),
        machine=machine,
        packages={**package_versions(), "aiohttp": version("aiohttp")},
        warnings=[
            *(blotted(line, asked.secrets) for line in found),
            *disturbances(machine),
            *_warnings(details),
        ],
        rows=probe_rows(asked, details.requests),
        details=msgspec.to_builtins(details),
    )
    return ProbeOutcome(record, collected.error)


def _id_check(asked: Asked, collected: Collected) -> tuple[IdCheck | None, list[str]]:
    """What comparing ids with the text has found, and why they could not be compared."""
    if asked.vocabulary is None:
        return None, []
    try:
        _ = asked.vocabulary.id_bytes
    except UnsupportedFamilyError as error:
        return None, [f"ids are not checked against the text: {error}"]
    return add_up([entry.ids for entry in collected.load.judged if entry.ids is not None]), []


def _settings(asked: Asked) -> dict[str, Any]:
    return {
        "concurrency": asked.concurrency,
        "requests": asked.requests,
        "max_tokens": asked.max_tokens,
        "temperature": 0,
        "seed": asked.seed,
        "timeout_s": asked.limits.seconds,
        "stream_limit_bytes": asked.limits.stream_bytes,
        "line_limit_bytes": asked.limits.line_bytes,
        "open_streams_limit_bytes": MOST_OPEN_BYTES,
        "gc": False,
        "client_bound_above": BOUND_SHARE,
    }


def _warnings(details: ProbeDetails) -> list[str]:
    """What makes the figures doubtful, or is to be known of them."""
    warnings = []
    if details.client.is_bound:
        warnings.append(
            f"client-bound: this process used {100 * details.client.cpu_share:.0f} % of a core, "
            "so the gaps may be its own; lower --concurrency, or run several probes"
        )
    if not details.client.parsed_late:
        warnings.append("some streams were parsed while others came: their gaps may be longer")
    if details.counts_disagree:
        warnings.append(
            f"{details.counts_disagree} requests have other totals of tokens by another count"
        )
    if any(facts.cumulative for facts in details.requests):
        warnings.append("cumulative: chunks repeat all that came before; read as deltas here")
    return warnings
