"""``detokbench tail-str``: what stop strings cost SGLang's scheduler on the critical path."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from detokbench.commands.options import (
    ChartOption,
    GcOption,
    JsonOption,
    OutOption,
    QuickOption,
    RigorousOption,
    ScenarioOption,
    SeedOption,
    TrustOption,
    VocabOption,
    only_utf8,
)
from detokbench.errors import DetokbenchError, usage_error
from detokbench.grammar import parse_choice, parse_count, parse_count_list, parse_duration_s

_CHECKS = {"ours": "tail-str", "sglang": "sglang"}

HELP = """\
Measure what stop strings cost the scheduler, and at which batch that outlasts the GPU's step.

SGLang decodes a tail of every request's output at every step to look for stops, and once more for
every chunk that it streams. Both checks and their parts are timed, and set against T_step.
"""


def tail_str(
    scenario: ScenarioOption = "llama3-chat",
    vocab: VocabOption = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            "--stop",
            metavar="TEXT",
            callback=only_utf8,
            help="A stop string; may be given several times, and is never split.  [default: the "
            "scenario's, else '</answer>' and one of 40 tokens]",
        ),
    ] = None,
    stop_regex: Annotated[
        list[str] | None,
        typer.Option(
            "--stop-regex",
            metavar="RE",
            callback=only_utf8,
            help="A stop regex; may be given several times.",
        ),
    ] = None,
    stop_tokens: Annotated[
        str,
        typer.Option(
            "--stop-tokens",
            metavar="LIST",
            help="Lengths of made-up stop strings, in tokens, for the growth of the cost.",
        ),
    ] = "3,8,16,40,64",
    stream_interval: Annotated[
        str, typer.Option("--stream-interval", metavar="LIST", help="Ids between chunks.")
    ] = "1,4,16",
    ids_per_step: Annotated[
        str,
        typer.Option("--ids-per-step", metavar="LIST", help="Ids that a request gets in a step."),
    ] = "1,4",
    streaming: Annotated[
        bool,
        typer.Option("--streaming/--no-streaming", help="Whether the requests stream."),
    ] = True,
    batch: Annotated[
        str,
        typer.Option(
            "--batch",
            metavar="LIST",
            help="Sequences a step: 1,32,256 or 1..512 (powers of two) or 64..512:64.",
        ),
    ] = "1..512",
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="NAME", help="Whose roofline T_step is.")
    ] = "h100-sxm",
    context: Annotated[
        str, typer.Option("--context", metavar="N", help="Mean tokens of context in T_step.")
    ] = "128",
    t_step: Annotated[
        str | None,
        typer.Option("--t-step", metavar="TIME", help="T_step, such as 4.48ms, for every batch."),
    ] = None,
    overlap: Annotated[
        bool,
        typer.Option(
            "--overlap/--no-overlap", help="Whether the scheduler works while the GPU does."
        ),
    ] = True,
    checks: Annotated[
        str,
        typer.Option(
            "--checks",
            metavar="WHOSE",
            help="Whose checks to time: ours, or sglang for those of the SGLang installed beside "
            "us.",
        ),
    ] = "ours",
    assume_c: Annotated[
        str | None,
        typer.Option(
            "--assume-c", metavar="TIME", help="Also print up to 2 calls a request at this cost."
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
    from detokbench.bench.plan import DEFAULT_EFFORT, QUICK_EFFORT, RIGOROUS_EFFORT
    from detokbench.bench.stop_sets import check_stops
    from detokbench.bench.tail_str import StopOptions, run_tail_str
    from detokbench.bench.tail_str_details import Asked
    from detokbench.paths.sglang_check import why_no_checks
    from detokbench.records.provenance import command_line, file_name, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.tstep.curves import given_curve, roofline_curve
    from detokbench.vocab.registry import check_vocabulary_name
    from detokbench.workload.scenario import load_scenario, override

    whose = parse_choice(checks, [*_CHECKS], "--checks")
    absent = why_no_checks() if whose == "sglang" else None
    if absent is not None:
        raise DetokbenchError(f"--checks sglang: {absent}")
    if quick and rigorous:
        raise usage_error("--quick and --rigorous exclude each other")
    effort = QUICK_EFFORT if quick else RIGOROUS_EFFORT if rigorous else DEFAULT_EFFORT
    options = StopOptions(
        strings=list(dict.fromkeys(stop or [])),
        regexes=list(dict.fromkeys(stop_regex or [])),
        growth_tokens=parse_count_list(stop_tokens, "--stop-tokens"),
        ids_per_step=parse_count_list(ids_per_step, "--ids-per-step"),
        intervals=parse_count_list(stream_interval, "--stream-interval") if streaming else [],
        checks=_CHECKS[whose],
    )
    check_stops(options.strings, options.regexes)
    asked = Asked(
        t_step=given_curve(parse_duration_s(t_step, "--t-step"))
        if t_step is not None
        else roofline_curve(gpu, parse_count(context, "--context")),
        batches=parse_count_list(batch, "--batch"),
        overlap=overlap,
        assumed_call_s=None if assume_c is None else parse_duration_s(assume_c, "--assume-c"),
    )
    chosen, folder = load_scenario(scenario)
    chosen = override(chosen, vocabulary=vocab)
    check_vocabulary_name(chosen.vocabulary)
    created = utc_now()
    place = place_for("tail-str", file_name(chosen.vocabulary), created, out)
    with progress_bar() as progress:
        outcome = run_tail_str(
            scenario=chosen,
            text_folder=folder,
            options=options,
            asked=asked,
            effort=effort,
            keep_gc=gc,
            seed=seed,
            trust_remote_code=trust_remote_code,
            created=created,
            command=command_line(sys.argv),
            progress=progress,
        )
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return outcome.exit_code()
