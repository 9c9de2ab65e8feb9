"""``detokbench measure-c``: what a tokenizer round trip costs on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

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
)
from detokbench.errors import usage_error
from detokbench.grammar import parse_count, parse_count_list

HELP = """\
Measure c: what one tokenizer round trip costs here, and a token, by each path.

Every path first has to stream twenty scripts without a wrong character; then each is timed in
fresh processes, in random order, and the record and a chart are stored under results/.
"""


def measure_c(
    scenario: ScenarioOption = "llama3-chat",
    vocab: VocabOption = None,
    paths: PathsOption = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="LIST",
            help="Sequences a step: 1,32,256 or 1..512 (powers of two) or 64..512:64.  "
            "[default: the scenario's]",
        ),
    ] = None,
    prompt_len: Annotated[
        str | None,
        typer.Option(
            "--prompt-len", metavar="N", help="Ids of each row's prompt.  [default: the scenario's]"
        ),
    ] = None,
    ids_per_step: Annotated[
        str | None,
        typer.Option(
            "--ids-per-step",
            metavar="N",
            help="Ids that a row gets in each step.  [default: the scenario's]",
        ),
    ] = None,
    quick: QuickOption = False,
    rigorous: RigorousOption = False,
    gate: Annotated[
        bool,
        typer.Option("--gate/--no-gate", help="Leave out paths that give wrong text."),
    ] = True,
    gc: GcOption = False,
    seed: SeedOption = 0,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.bench.measure_c import run_measure_c
    from detokbench.bench.plan import DEFAULT_EFFORT, QUICK_EFFORT, RIGOROUS_EFFORT
    from detokbench.paths.registry import check_path_names, path_names
    from detokbench.records.provenance import command_line, file_name, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.vocab.registry import check_vocabulary_name
    from detokbench.workload.scenario import load_scenario, override

    if quick and rigorous:
        raise usage_error("--quick and --rigorous exclude each other")
    effort = QUICK_EFFORT if quick else RIGOROUS_EFFORT if rigorous else DEFAULT_EFFORT
    chosen, folder = load_scenario(scenario)
    chosen = override(
        chosen,
        vocabulary=vocab,
        batches=None if batch is None else parse_count_list(batch, "--batch"),
        prompt_len=None if prompt_len is None else parse_count(prompt_len, "--prompt-len"),
        ids_per_step=None if ids_per_step is None else parse_count(ids_per_step, "--ids-per-step"),
    )
    check_vocabulary_name(chosen.vocabulary)
    names = path_names() if paths is None else check_path_names(paths)
    created = utc_now()
    place = place_for("measure-c", file_name(chosen.vocabulary), created, out)
    with progress_bar() as progress:
        outcome = run_measure_c(
            scenario=chosen,
            text_folder=folder,
            path_list=names,
            effort=effort,
            use_gate=gate,
            keep_gc=gc,
            seed=seed,
            trust_remote_code=trust_remote_code,
            created=created,
            command=command_line(sys.argv),
            progress=progress,
        )
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return outcome.exit_code()
