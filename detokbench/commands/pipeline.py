"""``detokbench pipeline``: the host side of a serving engine, run for real without a GPU."""

from __future__ import annotations

import sys
from typing import Annotated, get_args

import typer

from detokbench.commands.options import (
    ChartOption,
    JsonOption,
    OutOption,
    ScenarioOption,
    TrustOption,
    VocabOption,
    only_utf8,
)
from detokbench.errors import usage_error
from detokbench.grammar import (
    check_rate,
    parse_choice,
    parse_count,
    parse_count_list,
    parse_duration_s,
)

_MOST_ARRIVALS = 1_000_000
HELP = """\
Run the host side of vLLM or SGLang for real: processes, sockets, streams; a clock for a GPU.

The engine's process emits the ids of B sequences every T_step. Watched are the gaps at the
reader, the delay at every hop, the ids that wait, and the CPU of each process. With --ramp the
batch is walked up until the host falls behind, beside what its measured parts predict.
"""


def pipeline(
    topology: Annotated[
        str, typer.Option("--topology", metavar="NAME", help="vllm or sglang.")
    ] = "vllm",
    path: Annotated[
        str | None,
        typer.Option(
            "--path", metavar="NAME", help="The path that decodes.  [default: fast or batch-decode]"
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch", metavar="B", help="Sequences that run at a time, at most.  [default: 64]"
        ),
    ] = None,
    t_step: Annotated[
        str, typer.Option("--t-step", metavar="TIME", help="Time between two steps.")
    ] = "4.48ms",
    stream_interval: Annotated[
        str, typer.Option("--stream-interval", metavar="K", help="Ids between chunks.")
    ] = "1",
    stop: Annotated[
        list[str] | None,
        typer.Option(
            "--stop",
            metavar="TEXT",
            callback=only_utf8,
            help="A stop string of all requests; may be given several times.  [default: the "
            "scenario's]",
        ),
    ] = None,
    front_ends: Annotated[
        int, typer.Option("--frontends", min=1, max=64, metavar="N", help="Front-end processes.")
    ] = 1,
    detokenizers: Annotated[
        int,
        typer.Option("--detokenizers", min=1, max=64, metavar="N", help="Detokenizers (sglang)."),
    ] = 1,
    chunk_size: Annotated[
        str | None,
        typer.Option(
            "--chunk-size", metavar="N", help="Rows a slice of the loop (vllm).  [default: 128]"
        ),
    ] = None,
    arrival: Annotated[
        str,
        typer.Option(
            "--arrival", metavar="HOW", help="closed (one that ends is replaced) or poisson."
        ),
    ] = "closed",
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Requests a second, for poisson."),
    ] = None,
    max_tokens: Annotated[
        str, typer.Option("--max-tokens", metavar="N", help="Ids of the longest request.")
    ] = "256",
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="TIME", help="How long a run lasts.  [default: 10s, 3s in a ramp]"
        ),
    ] = None,
    http: Annotated[
        bool,
        typer.Option("--http/--no-http", help="Streams over HTTP, or stop at the front end."),
    ] = True,
    ramp: Annotated[
        str | None,
        typer.Option(
            "--ramp",
            metavar="LIST",
            help="Find the live B* within these batches: 1..512. In place of --batch.",
        ),
    ] = None,
    scenario: ScenarioOption = "llama3-chat",
    vocab: VocabOption = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Order and lengths of requests.")
    ] = 0,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.bench.stop_sets import check_stops
    from detokbench.live.one_run import check_duration
    from detokbench.live.pipeline import run_pipeline
    from detokbench.live.plan import Arrival, Topology
    from detokbench.live.setup import Asked
    from detokbench.paths.registry import check_path_names
    from detokbench.records.provenance import command_line, file_name, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.vocab.registry import check_vocabulary_name
    from detokbench.workload.scenario import load_scenario, override

    kind: Topology = parse_choice(topology, get_args(Topology), "--topology")
    how: Arrival = parse_choice(arrival, get_args(Arrival), "--arrival")
    if (how == "poisson") != (rate is not None):
        raise usage_error("--arrival poisson needs --rate, and --rate needs poisson")
    if rate is not None:
        check_rate(rate)
    if ramp is not None and how != "closed":
        raise usage_error("--ramp needs --arrival closed: the batch must be full")
    if ramp is not None and batch is not None:
        raise usage_error("--ramp is in place of --batch: give one of them")
    if chunk_size is not None and kind == "sglang":
        raise usage_error("--chunk-size is for --topology vllm; sglang takes a step as a whole")
    if detokenizers > 1 and kind == "vllm":
        raise usage_error("--detokenizers is for --topology sglang; vllm has --frontends")
    check_stops(stop or [], [])
    chosen, folder = load_scenario(scenario)
    chosen = override(chosen, vocabulary=vocab, stop=stop)
    check_vocabulary_name(chosen.vocabulary)
    names = check_path_names(path or ("fast" if kind == "vllm" else "batch-decode"), "--path")
    if len(names) > 1:
        raise usage_error(f"--path: '{path}' names several; a pipeline has one path")
    asked = Asked(
        topology=kind,
        path=names[0],
        scenario=chosen,
        text_folder=folder,
        t_step_s=parse_duration_s(t_step, "--t-step"),
        interval=parse_count(stream_interval, "--stream-interval"),
        stop=list(chosen.stop),
        front_ends=front_ends,
        detokenizers=detokenizers,
        chunk_size=parse_count(chunk_size or "128", "--chunk-size"),
        arrival=how,
        rate=rate or 0.0,
        max_tokens=parse_count(max_tokens, "--max-tokens"),
        http=http,
        seed=seed,
        trust_remote_code=trust_remote_code,
    )
    batches = [parse_count(batch or "64", "--batch")]
    if ramp is not None:
        batches = sorted(parse_count_list(ramp, "--ramp"))
    duration_s = parse_duration_s(duration or ("10s" if ramp is None else "3s"), "--duration")
    check_duration(duration_s, asked.t_step_s)
    if asked.rate * duration_s > _MOST_ARRIVALS:
        raise usage_error(f"--rate: more than {_MOST_ARRIVALS:,} arrivals in --duration")
    created = utc_now()
    place = place_for("pipeline", file_name(chosen.vocabulary), created, out)
    with progress_bar() as progress:
        outcome = run_pipeline(
            asked=asked,
            batches=batches,
            is_ramp=ramp is not None,
            duration_s=duration_s,
            created=created,
            command=command_line(sys.argv),
            progress=progress,
        )
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return outcome.exit_code()
