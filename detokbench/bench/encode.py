"""A whole ``encode`` run: cost of the calls, then arrivals and admissions on event loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from detokbench import __version__
from detokbench.bench.encode_cells import STALL_PATHS, encode_cells, pick_lengths
from detokbench.bench.encode_rows import cost_of, encode_rows, modelled_stalls
from detokbench.bench.machine import disturbances, machine_facts, package_versions
from detokbench.bench.manager import Manager
from detokbench.bench.plan import (
    Effort,
    LiveEncodeRequest,
    LoadRequest,
    PreparedEncode,
    PrepareEncodeRequest,
)
from detokbench.bench.run import Collected, Outcome, collect, without_folders
from detokbench.errors import DetokbenchError
from detokbench.live.encode_arrivals import WAYS
from detokbench.records.encode import (
    MOST_ARRIVALS,
    ArrivalCell,
    EncodeDetails,
    GilFact,
    StallCell,
)
from detokbench.records.provenance import file_name
from detokbench.records.schema import Record, Row
from detokbench.workload.scenario import Scenario, override

STREAMS = 32
ADMIT_EVERY = 20
MOST_IDS_A_CALL = 1 << 14
_ADMITTED = (128, 1024, 8192, 32768)
_ARRIVING = (1024, 8192)
_LOADS = (0.3, 0.8, 1.3)
_QUICK_LOADS = (0.5, 1.3)
_GIL_LENGTH = 8192
_OUTPUT_IDS = 512
_DEFAULT_EFFORT = Effort(name="default", processes=5, warmup_ms=1, visit_ms=4, visits=2)
_QUICK_EFFORT = Effort(name="quick", processes=2, warmup_ms=0.5, visit_ms=1, visits=1)
_COST_SHARE = 0.3  # of the run, for the bar
Progress = Callable[[str, float], None]
"""Takes what is being done and the share of the run that is done, 0 to 1."""


@dataclass(frozen=True)
class EncodePlan:
    """What is measured. ``rates`` are requests a second; None for shares of what a thread can."""

    scenario: Scenario
    text_folder: Path
    lengths: list[int]
    batches: list[int]
    rates: list[int] | None
    duration_s: float
    max_batch: int
    wait_s: float
    t_step_s: float
    quick: bool
    seed: int
    keep_gc: bool
    trust_remote_code: bool

    @property
    def effort(self) -> Effort:
        return _QUICK_EFFORT if self.quick else _DEFAULT_EFFORT

    @property
    def admitted(self) -> list[int]:
        """Lengths of the prompts that are admitted beside running streams."""
        return pick_lengths(self.lengths, _ADMITTED)

    @property
    def arriving(self) -> list[int]:
        """Lengths of the prompts that arrive; all of them also in a quick run with rates asked."""
        is_short = self.quick and self.rates is None
        return pick_lengths(self.lengths, _ARRIVING[:1] if is_short else _ARRIVING)


def run_encode(plan: EncodePlan, created: str, command: list[str], progress: Progress) -> Outcome:
    """Measure all of it.

    A worker that dies, or Ctrl-C, ends the run early: the record then holds what was finished and
    is marked partial. Raises what ended it where no process had finished.
    """
    machine = machine_facts()
    scenario = override(plan.scenario, batches=[STREAMS])
    scenario = msgspec.structs.replace(scenario, admit_prompt_lens=plan.admitted)
    load = LoadRequest(
        vocabulary=scenario.vocabulary,
        trust_remote_code=plan.trust_remote_code,
        paths=list(STALL_PATHS),
    )
    with Manager(load, plan.effort.processes, alone=1) as manager:
        progress(f"loading {file_name(scenario.vocabulary)}, making prompts", 0.0)
        prepared = _prepare(plan, scenario, manager)
        left_out = {entry.path for entry in prepared.not_applicable}
        paths = [path for path in STALL_PATHS if path not in left_out]
        cells = encode_cells(
            prepared,
            plan.lengths,
            plan.batches,
            plan.admitted,
            paths,
            len(manager.cpus),
            MOST_IDS_A_CALL,
        )
        run = collect(
            manager.measure(
                cells,
                scenario,
                plan.effort,
                plan.seed,
                plan.keep_gc,
                lambda share: progress("measuring calls", share * _COST_SHARE),
            )
        )
        rows = encode_rows(cells, run.finished, scenario)
        details = _details(plan, prepared, len(manager.cpus))
        if run.error is None:
            _measure_live(plan, manager, paths, rows, details, run, progress)
    modelled_stalls(details, rows)
    shown = without_folders(scenario, prepared.vocabulary["name"])
    record = Record(
        kind="encode",
        created=created,
        command=command,
        detokbench=__version__,
        partial=run.error is not None,
        scenario=msgspec.to_builtins(shown),
        vocabulary=prepared.vocabulary,
        settings=run.settings(plan.effort, plan.seed, plan.keep_gc),
        machine=machine,
        packages=package_versions(),
        warnings=disturbances(machine),
        not_applicable=prepared.not_applicable,
        rows=rows,
        details=msgspec.to_builtins(details),
        processes=run.finished,
    )
    return Outcome(record, run.error)


def _prepare(plan: EncodePlan, scenario: Scenario, manager: Manager) -> PreparedEncode:
    request = PrepareEncodeRequest(
        scenario=scenario,
        text_folder=str(plan.text_folder),
        workload_file=manager.workload_file,
        seed=plan.seed,
        lengths=plan.lengths,
        output_len=_OUTPUT_IDS,
    )
    return msgspec.convert(manager.ask_first(request), PreparedEncode)


def _details(plan: EncodePlan, prepared: PreparedEncode, cpus: int) -> EncodeDetails:
    return EncodeDetails(
        lengths=plan.lengths,
        batches=plan.batches,
        threads=cpus,
        most_ids_a_call=MOST_IDS_A_CALL,
        duration_s=plan.duration_s,
        max_batch=plan.max_batch,
        wait_s=plan.wait_s,
        t_step_s=plan.t_step_s,
        streams=STREAMS,
        admit_every=ADMIT_EVERY,
        prompts=prepared.prompts,
    )


def _measure_live(
    plan: EncodePlan,
    manager: Manager,
    paths: Sequence[str],
    rows: Sequence[Row],
    details: EncodeDetails,
    run: Collected,
    progress: Progress,
) -> None:
    """Fill in what is measured on event loops; what ends it early is kept in ``run``."""
    arrivals = [
        (length, rate) for length in plan.arriving for rate in _rates(plan, cost_of(rows, length))
    ]
    request = LiveEncodeRequest(
        workload_file=manager.workload_file,
        seed=plan.seed,
        keep_gc=plan.keep_gc,
        duration_s=plan.duration_s,
        max_batch=plan.max_batch,
        wait_s=plan.wait_s,
        t_step_s=plan.t_step_s,
        admit_every=ADMIT_EVERY,
        gil_length=pick_lengths(plan.lengths, (_GIL_LENGTH,))[0],
        arrivals=arrivals,
        stalls=_stalls(paths, plan.admitted),
    )
    expected = 3 * len(arrivals) + len(request.stalls)

    def take(part: Any) -> None:
        _add_part(details, rows, *part)
        done = len(details.arrivals) + len(details.stalls)
        progress("measuring on event loops", _COST_SHARE + (1 - _COST_SHARE) * done / expected)

    try:
        manager.ask_alone(request, take)
    except (KeyboardInterrupt, DetokbenchError) as error:
        run.error = error
    details.arrivals.sort(key=lambda cell: (cell.length, cell.rate, WAYS.index(cell.way)))
    details.stalls.sort(key=lambda cell: (STALL_PATHS.index(cell.path), cell.length))


def _rates(plan: EncodePlan, cost_s: float | None) -> list[float]:
    """Those asked for, else shares of what one thread can encode, to two digits.

    Shares of very short prompts stop at ``MOST_ARRIVALS`` a stream.
    """
    if plan.rates is not None:
        return [float(rate) for rate in plan.rates]
    if cost_s is None:
        return []
    loads = _QUICK_LOADS if plan.quick else _LOADS
    most = MOST_ARRIVALS / plan.duration_s
    return list(dict.fromkeys(min(float(f"{load / cost_s:.2g}"), most) for load in loads))


def _stalls(paths: Sequence[str], admitted: Sequence[int]) -> list[tuple[str, int]]:
    """All lengths for the path whose first token grows with the prompt, else the ends."""
    ends = dict.fromkeys((admitted[0], admitted[-1]))
    return [
        (path, length)
        for path in paths
        for length in (admitted if path == STALL_PATHS[0] else ends)
    ]


def _add_part(details: EncodeDetails, rows: Sequence[Row], field: str, content: Any) -> None:
    match field:
        case "idle_blocked_s":
            details.idle_blocked_s = content
        case "gil":
            details.gil.append(msgspec.convert(content, GilFact))
        case "arrivals":
            cell = msgspec.convert(content, ArrivalCell)
            cost_s = cost_of(rows, cell.length)
            cell.load = None if cost_s is None else cell.rate * cost_s
            details.arrivals.append(cell)
        case "stalls":
            details.stalls.append(msgspec.convert(content, StallCell))
