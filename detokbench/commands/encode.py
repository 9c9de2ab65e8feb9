"""``detokbench encode``: what turning prompts into ids costs, and how it stalls an event loop."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from detokbench.commands.options import (
    ChartOption,
    GcOption,
    JsonOption,
    OutOption,
    ScenarioOption,
    SeedOption,
    TrustOption,
    VocabOption,
)
from detokbench.errors import usage_error
from detokbench.grammar import parse_count, parse_count_list, parse_duration_s

HELP = """\
Measure what turning prompts into ids costs, and how long it stalls an event loop.

Calls for one prompt and for several are timed; then prompts arrive at an event loop that encodes
them itself, in a thread, or through SGLang's micro-batcher; then running streams are watched while
long prompts are admitted.
"""


def encode(
    scenario: ScenarioOption = "llama3-chat",
    vocab: VocabOption = None,
    lengths: Annotated[
        str, typer.Option("--lengths", metavar="LIST", help="Ids of the prompts.")
    ] = "128..32k",
    batch: Annotated[
        str, typer.Option("--batch", metavar="LIST", help="Prompts a call.")
    ] = "1,8,32",
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="LIST",
            help="Requests a second that arrive, of prompts nearest to 1k and to 8k ids.  "
            "[default: 0.3, 0.8 and 1.3 of what one thread encodes; with --quick 0.5 and 1.3, "
            "1k only]",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="How long each stream of arrivals or of steps lasts.  [default: 1s; 0.5s with "
            "--quick]",
        ),
    ] = None,
    max_batch: Annotated[
        str, typer.Option("--max-batch", metavar="N", help="Most prompts in a micro-batch.")
    ] = "32",
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="Longest wait of the micro-batcher.")
    ] = "2ms",
    t_step: Annotated[
        str, typer.Option("--t-step", metavar="TIME", help="T_step of the running streams.")
    ] = "4.48ms",
    quick: Annotated[
        bool, typer.Option("--quick", help="2 processes, fewer and shorter streams: a first look.")
    ] = False,
    gc: GcOption = False,
    seed: SeedOption = 0,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.bench.encode import EncodePlan, run_encode
    from detokbench.records.provenance import command_line, file_name, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.vocab.registry import check_vocabulary_name
    from detokbench.workload.scenario import load_scenario, override

    chosen, folder = load_scenario(scenario)
    plan = EncodePlan(
        scenario=override(chosen, vocabulary=vocab),
        text_folder=folder,
        lengths=sorted(parse_count_list(lengths, "--lengths")),
        batches=parse_count_list(batch, "--batch"),
        rates=None if rate is None else parse_count_list(rate, "--rate"),
        duration_s=parse_duration_s(duration or ("0.5s" if quick else "1s"), "--duration"),
        max_batch=parse_count(max_batch, "--max-batch"),
        wait_s=parse_duration_s(wait, "--wait"),
        t_step_s=parse_duration_s(t_step, "--t-step"),
        quick=quick,
        seed=seed,
        keep_gc=gc,
        trust_remote_code=trust_remote_code,
    )
    _check_size(plan.rates or [], plan.duration_s, plan.t_step_s, plan.lengths)
    check_vocabulary_name(plan.scenario.vocabulary)
    created = utc_now()
    place = place_for("encode", file_name(plan.scenario.vocabulary), created, out)
    with progress_bar() as progress:
        outcome = run_encode(plan, created, command_line(sys.argv), progress)
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return outcome.exit_code()


def _check_size(rates: list[int], duration_s: float, t_step_s: float, lengths: list[int]) -> None:
    """Refuse what would take for ever or all memory, before anything is loaded."""
    from detokbench.records.encode import MOST_ARRIVALS

    if max(rates, default=0) * duration_s > MOST_ARRIVALS:
        raise usage_error(f"--rate: more than {MOST_ARRIVALS:,} arrivals in --duration")
    if duration_s / t_step_s > MOST_ARRIVALS:
        raise usage_error(f"--t-step: more than {MOST_ARRIVALS:,} steps in --duration")
    if lengths[-1] > 1 << 20:
        raise usage_error(f"--lengths: {lengths[-1]:,} ids are more than a prompt of 1,024k")
