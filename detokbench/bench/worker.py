"""A worker process: loads a vocabulary, then does what the manager asks, and answers.

One JSON message a line in either direction. Times are taken here and nowhere else.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

import msgspec

from detokbench.bench.check_streams import (
    check_streams,
    stop_check,
    write_streams,
)
from detokbench.bench.encode_live import measure_live
from detokbench.bench.encode_subjects import LONG_CALL_IDS
from detokbench.bench.machine import pin_to, usable_cpus
from detokbench.bench.plan import (
    Cell,
    LiveEncodeRequest,
    LoadRequest,
    Measured,
    MeasureRequest,
    Prepared,
    PrepareEncodeRequest,
    PrepareRequest,
    PrepareStopsRequest,
)
from detokbench.bench.prepare_encode import prepare_encode
from detokbench.bench.prepare_stops import prepare_stops
from detokbench.bench.sampling import (
    Budget,
    Samples,
    clock_floor_ns,
    quiet_gc,
    visit,
    warm_up_and_calibrate,
)
from detokbench.bench.stop_sets import one_set
from detokbench.bench.subject_maker import SubjectMaker
from detokbench.bench.subjects import (
    Subject,
)
from detokbench.errors import DetokbenchError
from detokbench.paths.protocol import PathClass
from detokbench.paths.registry import load_path_class
from detokbench.records.schema import CellSamples, GateResult, NotApplicable, ProcessRun
from detokbench.vocab import Vocabulary, load_vocabulary
from detokbench.vocab.special_texts import warnings_about_stops
from detokbench.workload.streams import Workload, build_workload

_PR_SET_PDEATHSIG = 1
_Request = (
    PrepareRequest | PrepareStopsRequest | PrepareEncodeRequest | MeasureRequest | LiveEncodeRequest
)
_ADMISSION_VISITS = 2
_LONG_CALL_VISITS = 1
_BARE = {"call", "contain", "prefix_scan", "chunk", "logprobs"}
_SHARE_OF_CALLS = 0.5  # a bare call is steadier than the path around it, so it needs less time
_STOPPED_ROWS = 32


def main() -> None:
    """Read requests from standard input until it closes."""
    _die_with_the_manager()
    answers = _answers_apart()
    try:
        _serve(sys.stdin.buffer, answers)
    except DetokbenchError as error:
        _send(answers, "error", {"message": str(error), "exit_code": int(error.exit_code)})
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        _send(answers, "error", {"message": message, "traceback": traceback.format_exc()})


def _answers_apart() -> BinaryIO:
    """Standard output for answers alone: what a path or a library prints goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    load = msgspec.json.decode(requests.readline(), type=LoadRequest)
    vocabulary = load_vocabulary(load.vocabulary, load.trust_remote_code)
    classes, broken = _load_paths(load.paths)
    _send(answers, "ready", None)
    line = requests.readline()
    if not line:
        return  # the manager has gone
    match msgspec.json.decode(line, type=_Request):
        case MeasureRequest() as request:
            _send(answers, "measured", _measure(request, vocabulary, classes, answers))
        case PrepareRequest() as request:
            prepared = _prepare(request, vocabulary, classes, answers)
            prepared.gate += broken
            _send(answers, "prepared", prepared)
        case PrepareStopsRequest() as request:
            _send(answers, "prepared", prepare_stops(request, vocabulary))
        case PrepareEncodeRequest() as request:
            _send(answers, "prepared", prepare_encode(request, vocabulary, classes))
        case LiveEncodeRequest() as request:
            _start_thread_pool(vocabulary)
            for part in measure_live(request, vocabulary, classes):
                _send(answers, "part", part)
            _send(answers, "measured", None)


def _load_paths(names: list[str]) -> tuple[dict[str, PathClass], list[GateResult]]:
    """The paths, and a failed gate for each that cannot be imported: others go on without it."""
    classes: dict[str, PathClass] = {}
    broken: list[GateResult] = []
    for name in names:
        try:
            classes[name] = load_path_class(name)
        except DetokbenchError as error:
            broken.append(GateResult(path=name, verdict="fail", texts=0, note=str(error)))
    return classes, broken


@contextmanager
def _at(answers: BinaryIO, path: str, doing: str) -> Iterator[None]:
    """Tell the manager which path is at work, and name it in whatever it raises."""
    _send(answers, "at", f"path '{path}' {doing}")
    try:
        yield
    except Exception as error:
        why = " ".join(str(error).split())
        raise DetokbenchError(
            f"path '{path}' failed {doing}: {type(error).__name__}: {why}"
        ) from error


def _die_with_the_manager() -> None:
    """On Linux: be ended when the manager is, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _send(answers: BinaryIO, kind: str, content: Any) -> None:
    answers.write(msgspec.json.encode({"kind": kind, "content": content}) + b"\n")
    answers.flush()


def _prepare(
    request: PrepareRequest,
    vocabulary: Vocabulary,
    classes: dict[str, PathClass],
    answers: BinaryIO,
) -> Prepared:
    from detokbench.bench.gate import check_path, gate_corpus

    reasons = {}
    for name, path_class in classes.items():
        with _at(answers, name, "while asked whether it applies"):
            reasons[name] = path_class.why_not(vocabulary)
    applying = [path_class for name, path_class in classes.items() if reasons[name] is None]
    gate = []
    if request.run_gate:
        corpus = gate_corpus(vocabulary)
        for path_class in applying:
            with _at(answers, path_class.name, "in the gate"):
                gate.append(check_path(path_class, vocabulary, corpus))
    workload = build_workload(
        vocabulary,
        request.scenario,
        Path(request.text_folder),
        request.seed,
        request.output_len,
    )
    Path(request.workload_file).write_bytes(msgspec.msgpack.encode(workload))
    if request.walk_stops and request.scenario.stop:
        _walk_stops(request, vocabulary, workload)
    return Prepared(
        gate=gate,
        not_applicable=[
            NotApplicable(path=name, why=why) for name, why in reasons.items() if why is not None
        ],
        vocabulary=vocabulary.facts,
        stop_warnings=warnings_about_stops(
            vocabulary, request.scenario.stop, request.scenario.flags.skip_special_tokens
        ),
    )


def _walk_stops(request: PrepareRequest, vocabulary: Vocabulary, workload: Workload) -> None:
    stops = one_set(request.scenario.stop)
    check = stop_check(stops, vocabulary.encode, vocabulary.tokenizer.decode)
    streams = check_streams(workload.outputs[:_STOPPED_ROWS], stops, check)
    write_streams({stops: streams}, request.workload_file)


def _measure(
    request: MeasureRequest,
    vocabulary: Vocabulary,
    classes: dict[str, PathClass],
    answers: BinaryIO,
) -> Measured:
    started = perf_counter()
    everywhere = usable_cpus()
    _start_thread_pool(vocabulary)
    pinned = [request.cpu] if request.cpu is not None else everywhere
    pinned_here = pin_to(pinned)
    workload = msgspec.msgpack.decode(Path(request.workload_file).read_bytes(), type=Workload)
    maker = SubjectMaker(vocabulary, classes, workload, request)
    floor_ns = clock_floor_ns()
    subjects: dict[Cell, Subject] = {}
    for cell in request.cells:
        with _at(answers, cell.path, "while it was set up"):
            subject = maker.make(cell)
        if subject is not None:
            subjects[cell] = subject
    samples: dict[Cell, Samples] = {}
    rng = random.Random(request.seed)
    with quiet_gc(request.keep_gc):
        for number in range(request.effort.visits):
            for cell in rng.sample(list(subjects), k=len(subjects)):
                budget = _budget(cell, request)
                if number >= budget.visits:
                    continue
                doing = f"while it was measured ({cell.metric}, B = {cell.batch})"
                with _at(answers, cell.path, doing), _threads(cell.threads, pinned, everywhere):
                    if cell not in samples:
                        samples[cell] = warm_up_and_calibrate(subjects[cell], budget, floor_ns)
                    visit(subjects[cell], samples[cell], budget)
            _send(answers, "progress", (number + 1) / request.effort.visits)
    process = ProcessRun(
        cpu=request.cpu if pinned_here else None,
        clock_floor_ns=floor_ns,
        seconds=round(perf_counter() - started, 3),
        cells=[_cell_samples(cell, cell_samples) for cell, cell_samples in samples.items()],
    )
    return Measured(process=process, facts=list(maker.facts.items()))


def _budget(cell: Cell, request: MeasureRequest) -> Budget:
    effort = request.effort
    if cell.metric in {"admit", "first_token"}:
        visits = min(effort.visits, _ADMISSION_VISITS)
        return Budget(warmup_ns=0, visit_ns=round(effort.visit_ms * 2e5), visits=visits)
    if cell.metric in {"encode", "encode_batch"} and _ids_of(cell) >= LONG_CALL_IDS:
        return Budget(warmup_ns=0, visit_ns=0, visits=min(effort.visits, _LONG_CALL_VISITS))
    bare = cell.metric in _BARE
    share = _SHARE_OF_CALLS if bare else 1.0
    warmup_ns = round(effort.warmup_ms * 1e6)
    return Budget(
        warmup_ns=warmup_ns,
        visit_ns=round(effort.visit_ms * share * 1e6),
        visits=effort.visits,
        rewarm_ns=warmup_ns if bare else 0,
    )


def _ids_of(cell: Cell) -> int:
    return cell.batch * (cell.prompt_len or 0)


def _cell_samples(cell: Cell, samples: Samples) -> CellSamples:
    line = samples.line()
    return CellSamples(
        path=cell.path,
        metric=cell.metric,
        batch=cell.batch,
        threads=cell.threads,
        prompt_len=cell.prompt_len,
        ids_per_step=cell.ids_per_step,
        stream_interval=cell.stream_interval,
        stop=cell.stop,
        value_s=line.slope * 1e-9 if line.slope > 0 else None,
        intercept_s=line.intercept * 1e-9,
        warmup_ns=samples.warmup_ns,
        points=samples.points(),
    )


def _start_thread_pool(vocabulary: Vocabulary) -> None:
    """Make the crate's thread pool before pinning: its threads inherit the CPUs of this moment."""
    if vocabulary.rust is not None:
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        vocabulary.rust.decode_batch([[0], [0]] * 8)


@contextmanager
def _threads(count: int | None, pinned: list[int], everywhere: list[int]) -> Iterator[None]:
    """Tokenizers' threads on (and this thread off its one CPU) while a cell with threads runs."""
    many = count is not None and count > 1
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if many else "false"
    if not many:
        yield
        return
    pin_to(everywhere)
    try:
        yield
    finally:
        pin_to(pinned)


if __name__ == "__main__":
    main()
