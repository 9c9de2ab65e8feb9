"""``detokbench time-step``: how long the GPU takes for one decode step."""

from __future__ import annotations

import sys
from typing import Annotated, get_args

import typer

from detokbench.commands.options import (
    ChartOption,
    JsonOption,
    OutOption,
)
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.grammar import parse_choice, parse_count_list

HELP = """\
T_step: how long the GPU takes for one decode step, by batch and context.

Where there is a CUDA device the step is timed, with random weights, beside the roofline of its
data sheet; else the table is the roofline alone, and says so.
"""


def time_step(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="NAME|FOLDER",
            help="A shape of 'detokbench model list', or a folder with a config.json.",
        ),
    ] = "llama-3-8b",
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="NAME",
            help="See 'detokbench gpu list'.  [default: the one here, or h100-sxm]",
        ),
    ] = None,
    batch: Annotated[
        str,
        typer.Option(
            "--batch",
            metavar="LIST",
            help="Sequences a step: 1,32,256 or 1..512 (powers of two) or 64..512:64.",
        ),
    ] = "1..512",
    context: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="LIST",
            help="Mean KV length in tokens (prompt plus half the output); may be 0.",
        ),
    ] = "0,1k,4k",
    tp: Annotated[int, typer.Option("--tp", metavar="N", help="GPUs that share the model.")] = 1,
    weights: Annotated[
        str, typer.Option("--weights", metavar="bf16|fp8|int4", help="Format of the weights.")
    ] = "bf16",
    kv: Annotated[
        str, typer.Option("--kv", metavar="bf16|fp8", help="Format of the KV cache.")
    ] = "bf16",
    derate: Annotated[
        float | None,
        typer.Option(
            "--derate",
            metavar="SHARE",
            help="Also show the roofline with this share of the data sheet's peaks, such as 0.8.",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="auto|cuda|cpu|none",
            help="What to time; none: the roofline only; cpu: small models only.",
        ),
    ] = "auto",
    compile_layers: Annotated[
        bool, typer.Option("--compile", help="Compile the layers before they are timed.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Time each point briefly.")] = False,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.records.provenance import command_line, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.tstep.plan import Asked, make_plan
    from detokbench.tstep.roofline import KvFormat, WeightFormat
    from detokbench.tstep.run import DEFAULT_EFFORT, QUICK_EFFORT, run_time_step
    from detokbench.tstep.shapes import find_shape

    asked = Asked(
        shape=find_shape(model),
        batches=parse_count_list(batch, "--batch"),
        contexts=parse_count_list(context, "--context", least=0),
        weights=parse_choice(weights, get_args(WeightFormat), "--weights"),
        kv=parse_choice(kv, get_args(KvFormat), "--kv"),
        tp=tp,
        derate=derate,
    )
    plan = make_plan(asked, device, gpu)
    created = utc_now()
    place = place_for("time-step", plan.label, created, out)
    with progress_bar() as progress:
        outcome = run_time_step(
            plan=plan,
            effort=QUICK_EFFORT if quick else DEFAULT_EFFORT,
            compile_layers=compile_layers,
            created=created,
            command=command_line(sys.argv),
            progress=progress,
        )
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return _exit_code(outcome.error)


def _exit_code(error: BaseException | None) -> int:
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, DetokbenchError):
        raise error
    return ExitCode.OK
