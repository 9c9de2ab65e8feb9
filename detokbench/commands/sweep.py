"""``detokbench sweep``: at which batch the host stops keeping up with the GPU."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from detokbench.commands.options import (
    ChartOption,
    GcOption,
    JsonOption,
    OutOption,
    PathsOption,
    QuickOption,
    RigorousOption,
    ScenarioOption,
    SeedOption,
    TrustOption,
    VocabOption,
    only_utf8,
)
from detokbench.errors import ExitCode, usage_error
from detokbench.grammar import (
    parse_count,
    parse_count_list,
    parse_duration_s,
)

if TYPE_CHECKING:
    from detokbench.records.sweep import SweepOptions

HELP = """\
Sweep the batch: at which B* does the host stop keeping up with the GPU, by each path?

The host's cost a step is measured at every batch, with the chunks that it sends, and set against
T_step of a GPU: from its roofline, a time that you give, or a record of time-step.
"""


def sweep(
    batch: Annotated[
        str,
        typer.Option(
            "--batch",
            metavar="LIST",
            help="Sequences a step: 1..512 (powers of two), 64..512:64, or 1,32,256.",
        ),
    ] = "1..512",
    context: Annotated[
        str,
        typer.Option("--context", metavar="LIST", help="Mean tokens of context in T_step."),
    ] = "128,1024,8192",
    stream_interval: Annotated[
        str, typer.Option("--stream-interval", metavar="LIST", help="Ids between chunks.")
    ] = "1,2,4,8,16",
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="B",
            help="The batch that the recommendation is for.  [default: 256, or the nearest]",
        ),
    ] = None,
    scenario: ScenarioOption = "llama3-chat",
    vocab: VocabOption = None,
    paths: PathsOption = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            "--stop",
            metavar="TEXT",
            callback=only_utf8,
            help="A stop string, for SGLang's scheduler; may be given several times.",
        ),
    ] = None,
    ids_per_step: Annotated[
        str,
        typer.Option("--ids-per-step", metavar="N", help="Ids a step (speculative decoding)."),
    ] = "1",
    logprobs: Annotated[
        str,
        typer.Option(
            "--logprobs",
            metavar="LIST",
            help="Alternatives a position, whose text is measured; one number is counted in.",
        ),
    ] = "0",
    engines_per_frontend: Annotated[
        str,
        typer.Option(
            "--engines-per-frontend", metavar="N", help="Data-parallel engines behind a front end."
        ),
    ] = "1",
    overlap: Annotated[
        bool,
        typer.Option(
            "--overlap/--no-overlap", help="Whether the scheduler works while the GPU does."
        ),
    ] = True,
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="NAME", help="See 'detokbench gpu list'.")
    ] = "h100-sxm",
    model: Annotated[
        str, typer.Option("--model", metavar="NAME|FOLDER", help="See 'detokbench model list'.")
    ] = "llama-3-8b",
    weights: Annotated[
        str, typer.Option("--weights", metavar="FORMAT", help="bf16, fp8 or int4.")
    ] = "bf16",
    kv: Annotated[str, typer.Option("--kv", metavar="FORMAT", help="bf16 or fp8.")] = "bf16",
    tp: Annotated[int, typer.Option("--tp", min=1, help="GPUs that share the model.")] = 1,
    derate: Annotated[
        float,
        typer.Option("--derate", help="Share of the roofline's rates reached, as rows of its own."),
    ] = 1.0,
    t_step: Annotated[
        str | None,
        typer.Option("--t-step", metavar="TIME", help="T_step, such as 4.48ms, for every batch."),
    ] = None,
    t_step_from: Annotated[
        str | None,
        typer.Option(
            "--t-step-from", metavar="RECORD", help="T_step as a time-step record measured it."
        ),
    ] = None,
    host_cost_from: Annotated[
        list[str] | None,
        typer.Option(
            "--host-cost-from",
            metavar="RECORD",
            help="Whole front ends beside the paths, as a frontend record measured them; may be "
            "given several times.",
        ),
    ] = None,
    assume_c: Annotated[
        str | None,
        typer.Option(
            "--assume-c",
            metavar="TIME",
            help="Measure nothing: the table for a call of this cost, from counts of calls.",
        ),
    ] = None,
    check_model: Annotated[
        bool,
        typer.Option("--check-model", help="Hold the amortised model against cells it never saw."),
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="RECORD", help="Do what is missing in an interrupted sweep."
        ),
    ] = None,
    quick: QuickOption = False,
    rigorous: RigorousOption = False,
    gc: GcOption = False,
    seed: SeedOption = 0,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.bench.stop_sets import check_stops
    from detokbench.bench.sweep import SweepPlan, effort_for, run_sweep
    from detokbench.model.check import FEWEST_TO_CHECK
    from detokbench.paths.registry import check_path_names, path_names
    from detokbench.records.provenance import command_line, file_name, utc_now
    from detokbench.records.store import place_for
    from detokbench.records.sweep_request import resumed, sweep_options
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.vocab.registry import check_vocabulary_name
    from detokbench.workload.scenario import load_scenario, override

    if quick and rigorous:
        raise usage_error("--quick and --rigorous exclude each other")
    kept = (json, check_model, stop, host_cost_from, resume is not None)
    if assume_c is not None and any(kept):
        raise usage_error(
            "--assume-c measures and stores nothing: leave out --json, --check-model, --stop, "
            "--host-cost-from and --resume"
        )
    batches = parse_count_list(batch, "--batch")
    check_stops(stop or [], [])
    if check_model and len(batches) < FEWEST_TO_CHECK:
        raise usage_error(f"--check-model needs {FEWEST_TO_CHECK} batches or more")
    options = sweep_options(
        gpu=gpu,
        model=model,
        weights=weights,
        kv=kv,
        tp=tp,
        derate=derate,
        contexts=parse_count_list(context, "--context", least=0),
        intervals=parse_count_list(stream_interval, "--stream-interval"),
        ids_per_step=parse_count(ids_per_step, "--ids-per-step"),
        engines_per_frontend=parse_count(engines_per_frontend, "--engines-per-frontend"),
        logprobs=parse_count_list(logprobs, "--logprobs", least=0),
        given_s=None if t_step is None else parse_duration_s(t_step, "--t-step"),
        measured_from=t_step_from,
        overlap=overlap,
        at_batch=None if at is None else parse_count(at, "--at"),
        batches=batches,
        host_costs_from=host_cost_from or [],
    )
    if assume_c is not None:
        return _show_assumed(parse_duration_s(assume_c, "--assume-c"), options, batches)
    chosen, folder = load_scenario(scenario)
    chosen = override(
        chosen,
        vocabulary=vocab,
        batches=batches,
        ids_per_step=options.ids_per_step,
        stop=stop,
    )
    check_vocabulary_name(chosen.vocabulary)
    names = path_names() if paths is None else check_path_names(paths)
    effort = effort_for(quick, rigorous)
    finished = resumed(resume, chosen, options, effort.processes) if resume is not None else []
    created = utc_now()
    place = place_for("sweep", file_name(chosen.vocabulary), created, out)
    plan = SweepPlan(
        scenario=chosen,
        text_folder=folder,
        paths=names,
        options=options,
        effort=effort,
        seed=seed,
        keep_gc=gc,
        trust_remote_code=trust_remote_code,
    )
    with progress_bar() as progress:
        outcome = run_sweep(plan, created, command_line(sys.argv), progress, finished)
    keep_record(outcome.record, place, as_json=json, chart=chart, check_model=check_model)
    return outcome.exit_code()


def _show_assumed(assumed_call_s: float, options: SweepOptions, batches: list[int]) -> int:
    from rich.console import Console

    from detokbench.report.assumed_screen import print_assumed

    print_assumed(assumed_call_s, options, batches, Console())
    return ExitCode.OK
