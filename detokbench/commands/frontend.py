"""``detokbench frontend``: an engine's whole front end, unmodified, against a clock for a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from detokbench.commands.options import (
    ChartOption,
    JsonOption,
    OutOption,
    ScenarioOption,
    SeedOption,
    TrustOption,
)
from detokbench.errors import usage_error
from detokbench.grammar import parse_count, parse_count_list, parse_duration_s

HELP = """\
Run an engine's own front end against a clock in place of the GPU, and find its limit.

HTTP server, tokenizer, detokenizer, stop strings and SSE are the engine's, started from its own
environment; our engine sends it ids at a pace, our clients read. Reported are CPU a token by
role, chunks, ITL and lag, and the highest rate that holds.
"""


def frontend(
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="DIR", help="Folder with tokenizer, config, chat template."
        ),
    ],
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="LIST", help="vllm, vllm-rs, sglang, sglang-rs."),
    ] = "vllm",
    engine_python: Annotated[
        str | None,
        typer.Option(
            "--engine-python",
            metavar="PATH",
            help="The engine's environment or python; vllm=PATH,sglang=PATH.  [default: this one]",
        ),
    ] = None,
    streams: Annotated[
        str | None,
        typer.Option("--streams", metavar="LIST", help="Streams at a time.  [default: 1,32,128]"),
    ] = None,
    t_step: Annotated[
        str | None,
        typer.Option(
            "--t-step", metavar="LIST", help="Time between steps.  [default: 20ms,10ms,5ms]"
        ),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Find the highest rate that holds.")
    ] = True,
    front_ends: Annotated[
        int, typer.Option("--front-ends", min=1, max=64, help="Front-end processes.")
    ] = 1,
    max_tokens: Annotated[
        str, typer.Option("--max-tokens", metavar="N", help="Ids of a request.")
    ] = "256",
    prompt_len: Annotated[
        str, typer.Option("--prompt-len", metavar="N", help="Ids of a prompt.")
    ] = "16",
    stop: Annotated[
        list[str] | None,
        typer.Option("--stop", metavar="TEXT", help="A row of its own with this stop string."),
    ] = None,
    logprobs: Annotated[
        str | None,
        typer.Option("--logprobs", metavar="N", help="A row of its own with log-probabilities."),
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="A row of its own with chat completions.")
    ] = False,
    reasoning_parser: Annotated[
        str | None,
        typer.Option("--reasoning-parser", metavar="NAME", help="A row with the server's parser."),
    ] = None,
    tool_call_parser: Annotated[
        str | None,
        typer.Option("--tool-call-parser", metavar="NAME", help="A row with the server's parser."),
    ] = None,
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="NAME", help="For B*; see 'detokbench gpu list'.")
    ] = "h100-sxm",
    shape: Annotated[
        str, typer.Option("--shape", metavar="NAME", help="For B*; see 'detokbench model list'.")
    ] = "llama-3-8b",
    context: Annotated[
        str, typer.Option("--context", metavar="LIST", help="Mean tokens of context in T_step.")
    ] = "128,1024",
    ready_timeout: Annotated[
        str, typer.Option("--ready-timeout", metavar="TIME", help="For a server to get ready.")
    ] = "300s",
    scenario: ScenarioOption = "llama3-chat",
    quick: Annotated[bool, typer.Option("--quick", help="Half a minute: a first look.")] = False,
    seed: SeedOption = 0,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.bench.stop_sets import check_stops
    from detokbench.live.engines.frontend_plan import DEFAULT, QUICK, Asked, engine_pythons
    from detokbench.live.engines.frontend_run import run_frontend
    from detokbench.live.engines.one_engine import LEAST_STEPS
    from detokbench.live.engines.registry import check_front_end_names
    from detokbench.records.provenance import command_line, file_name, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.tstep.curves import Deployment, check_fits
    from detokbench.tstep.gpus import find_gpu
    from detokbench.tstep.shapes import find_shape
    from detokbench.workload.scenario import load_scenario

    engines = check_front_end_names(engine)
    if not Path(model).is_dir():
        raise usage_error(f"--model: there is no folder {model}")
    check_stops(stop or [], [])
    chosen, folder = load_scenario(scenario)
    deployment = Deployment(gpu=find_gpu(gpu), model=find_shape(shape))
    contexts = parse_count_list(context, "--context", least=0)
    for one in contexts:
        check_fits(deployment, one)
    asked = Asked(
        engines=engines,
        pythons=engine_pythons(engines, engine_python, Path(sys.executable)),
        model=Path(model).resolve(),
        scenario=chosen,
        text_folder=folder,
        streams=sorted(
            parse_count_list(streams or ("1,128" if quick else "1,32,128"), "--streams")
        ),
        t_steps_s=_durations(t_step or ("10ms" if quick else "20ms,10ms,5ms")),
        max_tokens=parse_count(max_tokens, "--max-tokens", least=LEAST_STEPS),
        prompt_len=parse_count(prompt_len, "--prompt-len"),
        front_ends=front_ends,
        stop=list(stop or []),
        chat=chat,
        logprobs=None if logprobs is None else parse_count(logprobs, "--logprobs", least=0),
        reasoning_parser=reasoning_parser,
        tool_call_parser=tool_call_parser,
        deployment=deployment,
        contexts=contexts,
        effort=QUICK if quick else DEFAULT,
        search=search,
        seed=seed,
        trust_remote_code=trust_remote_code,
        ready_timeout_s=parse_duration_s(ready_timeout, "--ready-timeout"),
    )
    created = utc_now()
    place = place_for("frontend", file_name(model), created, out)
    with progress_bar() as progress:
        outcome = run_frontend(asked, created, command_line(sys.argv), progress)
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return outcome.exit_code()


def _durations(text: str) -> list[float]:
    """From the longest to the shortest, without repeats."""
    found = {parse_duration_s(part, "--t-step") for part in text.split(",")}
    return sorted(found, reverse=True)
