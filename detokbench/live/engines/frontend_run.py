"""A whole ``frontend`` command, from what is asked to the record."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from detokbench import __version__
from detokbench.bench.machine import disturbances, machine_facts, package_versions
from detokbench.bench.run import Outcome, without_folders
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.engines.front_end import FrontEnd
from detokbench.live.engines.front_end_judge import RULE
from detokbench.live.engines.frontend_answers import answers_of, gpu_curves
from detokbench.live.engines.frontend_plan import Asked
from detokbench.live.engines.frontend_rows import frontend_rows
from detokbench.live.engines.frontend_workload import FrontendWorkload, eos_of, frontend_workload
from detokbench.live.engines.interrupts import one_interrupt
from detokbench.live.engines.one_engine import OneEngine
from detokbench.live.engines.registry import load_front_end
from detokbench.live.engines.session import CLIENT_MODULES
from detokbench.live.schedule import check_shared_clock
from detokbench.live.supervise import Supervisor
from detokbench.records.frontend import FrontendDetails
from detokbench.records.schema import Record
from detokbench.vocab.registry import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary

Progress = Callable[[str, float], None]
_FEW_CPUS = 4
_SEARCH_RUNS = 6  # for the progress bar: about so many a number of streams


def run_frontend(asked: Asked, created: str, command: list[str], progress: Progress) -> Outcome:
    """Measure one front end after the other.

    What was measured before something ended it, Ctrl-C or a front end that died, is kept: the
    record is then partial. Raises what ended it where there is nothing to keep.
    """
    check_shared_clock()
    machine = machine_facts()
    progress("looking for the engines", 0.0)
    front_ends = [load_front_end(name) for name in asked.engines]
    versions = [front_end.version(asked.pythons[front_end.name]) for front_end in front_ends]
    progress("reading the tokenizer", 0.0)
    vocabulary = load_vocabulary(str(asked.model), asked.trust_remote_code)
    workload = frontend_workload(
        vocabulary,
        asked.scenario,
        asked.text_folder,
        asked.seed,
        asked.prompt_len,
        asked.max_tokens,
    )
    details = _empty_details(asked, workload)
    error: BaseException | None = None
    try:
        with one_interrupt(), Supervisor(CLIENT_MODULES) as supervisor:
            _measure(
                asked, front_ends, versions, vocabulary, workload, supervisor, details, progress
            )
    except (DetokbenchError, KeyboardInterrupt) as stop:
        error = stop
    if not details.runs:
        raise _nothing(error)
    if error is not None:
        details.ended_by = "Ctrl-C" if isinstance(error, KeyboardInterrupt) else str(error)
    details.answers = answers_of(details, asked)
    return Outcome(
        _record(asked, details, vocabulary, machine, created, command, error is not None), error
    )


def _measure(
    asked: Asked,
    front_ends: list[FrontEnd],
    versions: list[str],
    vocabulary: Vocabulary,
    workload: FrontendWorkload,
    supervisor: Supervisor,
    details: FrontendDetails,
    progress: Progress,
) -> None:
    each = len(asked.streams) * (len(asked.t_steps_s) + _SEARCH_RUNS * asked.search) + 2
    begun = 0

    def report(what: str) -> None:
        nonlocal begun
        begun += 1
        progress(what, min(begun / (each * len(front_ends)), 0.99))

    for front_end, version in zip(front_ends, versions, strict=True):
        one = OneEngine(
            asked,
            front_end,
            version,
            workload,
            eos_of(vocabulary),
            supervisor,
            details,
            report,
        )
        one.measure()


def _nothing(error: BaseException | None) -> BaseException:
    if isinstance(error, KeyboardInterrupt):
        return DetokbenchError(
            "interrupted before anything ran: nothing is stored", ExitCode.INTERRUPTED
        )
    return error or DetokbenchError("nothing ran")


def _empty_details(asked: Asked, workload: FrontendWorkload) -> FrontendDetails:
    return FrontendDetails(
        engines=[],
        front_ends=asked.front_ends,
        streams=list(asked.streams),
        t_steps_s=list(asked.t_steps_s),
        max_tokens=asked.max_tokens,
        prompt_len=asked.prompt_len,
        is_ascii=all(text.is_ascii for text in workload.texts),
        stop=asked.stop,
        rule=RULE,
        gpu=asked.deployment.gpu.title,
        shape=asked.deployment.model.name,
        curves=gpu_curves(asked),
        runs=[],
        limits=[],
        answers=[],
        open_ends=[],
    )


def _record(
    asked: Asked,
    details: FrontendDetails,
    vocabulary: Vocabulary,
    machine: dict[str, object],
    created: str,
    command: list[str],
    partial: bool,
) -> Record:
    shown = without_folders(asked.scenario, vocabulary.name)
    return Record(
        kind="frontend",
        created=created,
        command=command,
        detokbench=__version__,
        partial=partial,
        scenario=msgspec.to_builtins(shown),
        vocabulary=dict(vocabulary.facts),
        settings={
            "processes_finished": len(details.engines),
            "seed": asked.seed,
            "gc": True,
            "pinned": False,
            **{name: getattr(asked.effort, name) for name in ("warm_up_s", "window_s", "width")},
        },
        machine=machine,
        packages={
            **package_versions(),
            **{engine.name: engine.version for engine in details.engines},
        },
        warnings=[*disturbances(machine), *_few_cpus(machine)],
        rows=frontend_rows(details, vocabulary.name),
        details=msgspec.to_builtins(details, str_keys=True),
    )


def _few_cpus(machine: dict[str, object]) -> list[str]:
    cpus = machine["cpus_usable"]
    if isinstance(cpus, int) and cpus < _FEW_CPUS:
        return [
            f"{cpus} CPUs for the front end, our engine and the clients: they take time from each "
            f"other, so that limits are too low here; use {_FEW_CPUS} or more"
        ]
    return []
