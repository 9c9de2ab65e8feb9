"""``detokbench fidelity``: whether our paths do what the installed engine's own classes do."""

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
    TrustOption,
)
from detokbench.errors import usage_error
from detokbench.grammar import parse_count, parse_count_list

HELP = """\
Compare our paths with the classes of the engine installed beside us: text by text, cost by cost.

Every case, text and random stream goes through both; what they first differ in is shown with the
smallest stream that shows it. Then both are timed in the same processes. The exit code is 1 where
texts differ in what is not known, and 5 where no engine is installed.
"""


def fidelity(
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            metavar="LIST",
            help="Pairs OURS:THEIRS, with commas.  [default: all whose engine is installed]",
        ),
    ] = None,
    vocab: Annotated[
        list[str] | None,
        typer.Option(
            "--vocab",
            metavar="NAME|PATH|HUB-ID",
            help="Vocabulary of the texts; may be given several times.  [default: all that are "
            "shipped]",
        ),
    ] = None,
    fuzz: Annotated[
        str, typer.Option("--fuzz", metavar="N", help="Random streams on each vocabulary.")
    ] = "2000",
    scenario: ScenarioOption = "llama3-chat",
    batch: Annotated[
        str, typer.Option("--batch", metavar="LIST", help="Sequences a step, for the cost.")
    ] = "32,256",
    cost: Annotated[bool, typer.Option("--cost/--no-cost", help="Compare the costs too.")] = True,
    quick: QuickOption = False,
    rigorous: RigorousOption = False,
    gc: GcOption = False,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="S", help="Which random streams.")
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, max=1024, metavar="N", help="Processes.  [default: the CPUs]"
        ),
    ] = None,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.bench.plan import DEFAULT_EFFORT, QUICK_EFFORT, RIGOROUS_EFFORT
    from detokbench.fidelity.pairs import pairs_from
    from detokbench.fidelity.run import Asked, run_fidelity
    from detokbench.records.provenance import command_line, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.vocab.registry import check_vocabulary_name, known_vocabularies
    from detokbench.workload.cases import shipped_cases
    from detokbench.workload.scenario import load_scenario, override

    if quick and rigorous:
        raise usage_error("--quick and --rigorous exclude each other")
    effort = QUICK_EFFORT if quick else RIGOROUS_EFFORT if rigorous else DEFAULT_EFFORT
    chosen, folder = load_scenario(scenario)
    names = list(dict.fromkeys(vocab or [known.name for known in known_vocabularies()]))
    for name in [*names, chosen.vocabulary]:
        check_vocabulary_name(name)
    asked = Asked(
        pairs=tuple(pairs_from(pairs)),
        vocabularies=tuple(names),
        cases=tuple(shipped_cases()),
        fuzz=parse_count(fuzz, "--fuzz"),
        seed=seed,
        scenario=override(chosen, batches=parse_count_list(batch, "--batch")),
        text_folder=folder,
        effort=effort if cost else None,
        keep_gc=gc,
        trust_remote_code=trust_remote_code,
    )
    created = utc_now()
    place = place_for("fidelity", "engine", created, out)
    with progress_bar() as progress:
        outcome = run_fidelity(asked, jobs, created, command_line(sys.argv), progress)
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return outcome.exit_code()
