"""``detokbench probe``: a server watched from outside."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from detokbench.commands.options import ChartOption, JsonOption, OutOption, only_utf8
from detokbench.grammar import parse_choice, parse_count, parse_duration_s

HELP = """\
Watch a server from outside: stream from it, and say what its chunks are made of.

For any OpenAI-compatible server. Time to the first token, gaps between chunks and between tokens,
empty chunks, broken characters, what stop strings hold back, and whether the streamed text is the
answer. Time is stamped when bytes arrive, before they are parsed. The exit code is 1 where a
request did not end well.
"""


def probe(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The server, such as http://localhost:8000.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            callback=only_utf8,
            help="Model to ask for.  [default: the first it lists]",
        ),
    ] = None,
    api: Annotated[
        str, typer.Option("--api", metavar="completions|chat", help="Which interface to ask.")
    ] = "completions",
    concurrency: Annotated[
        str, typer.Option("--concurrency", metavar="N", help="Requests at a time.")
    ] = "4",
    requests: Annotated[
        str, typer.Option("--requests", metavar="N", help="Requests in all.")
    ] = "24",
    prompts: Annotated[
        str | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="One prompt a line, or a JSON object with 'prompt' or 'messages'.  [default: "
            "characters that split, a long stop string, many scripts]",
        ),
    ] = None,
    max_tokens: Annotated[
        str, typer.Option("--max-tokens", metavar="N", help="Most tokens of each answer.")
    ] = "64",
    stop: Annotated[
        list[str] | None,
        typer.Option(
            "--stop",
            metavar="TEXT",
            callback=only_utf8,
            help="A stop string whose hold-back is measured; may be given several times.  "
            "[default: one of 50 characters, or none with --prompts]",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="NAME|PATH|HUB-ID",
            help="Vocabulary of the model, to count tokens and to check ids.",
        ),
    ] = None,
    token_ids: Annotated[
        bool, typer.Option("--token-ids", help="Ask for ids (vLLM, SGLang) and check the text.")
    ] = False,
    logprobs: Annotated[
        bool,
        typer.Option("--logprobs", help="Ask for log-probabilities, which count tokens."),
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Limit of each request.")
    ] = "60s",
    compare: Annotated[
        bool,
        typer.Option(
            "--compare/--no-compare", help="Ask without streaming too, and compare the texts."
        ),
    ] = True,
    api_key_env: Annotated[
        str,
        typer.Option(
            "--api-key-env", metavar="NAME", help="Variable that holds the key; never stored."
        ),
    ] = "OPENAI_API_KEY",
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, metavar="N", help="Seed that each request names to the server."
        ),
    ] = 0,
    out: OutOption = None,
    chart: ChartOption = True,
    json: JsonOption = False,
) -> int:
    from pathlib import Path

    from detokbench.live.open_files import allow_streams
    from detokbench.live.probe_asked import Asked, key_of
    from detokbench.live.probe_fetch import Limits, stream_limit_bytes
    from detokbench.live.probe_prompts import (
        LONG_STOP,
        STOP_PROMPT,
        built_in_prompts,
        read_prompts,
    )
    from detokbench.live.probe_record import record_of
    from detokbench.live.probe_run import run_probe
    from detokbench.live.probe_url import API_PATHS, command_without_url, parse_server
    from detokbench.records.provenance import command_line, utc_now
    from detokbench.records.store import place_for
    from detokbench.report.output import keep_record, progress_bar
    from detokbench.stops.validation import refuse_empty_stop
    from detokbench.vocab.registry import load_vocabulary

    key = key_of(api_key_env)
    interface = parse_choice(api, list(API_PATHS), "--api")
    server = parse_server(url, interface)
    stops = list(dict.fromkeys(stop or []))
    for text in stops:
        refuse_empty_stop(text, "--stop")
    asked_prompts = (
        built_in_prompts() if prompts is None else read_prompts(Path(prompts), interface)
    )
    hold_prompt = STOP_PROMPT if prompts is None else asked_prompts[0] if stops else None
    at_a_time = parse_count(concurrency, "--concurrency")
    in_all = parse_count(requests, "--requests")
    allow_streams(min(at_a_time, in_all), "--concurrency")
    length = parse_count(max_tokens, "--max-tokens")
    asked = Asked(
        server=server,
        api=interface,
        model=model,
        prompts=asked_prompts,
        hold_prompt=hold_prompt,
        stop=stops or [LONG_STOP],
        concurrency=at_a_time,
        requests=in_all,
        max_tokens=length,
        limits=Limits(
            parse_duration_s(timeout, "--timeout"), stream_limit_bytes(at_a_time, length)
        ),
        seed=seed,
        compares=compare,
        asks_ids=token_ids,
        asks_logprobs=logprobs,
        vocabulary=None if tokenizer is None else load_vocabulary(tokenizer),
        key=key,
    )
    created = utc_now()
    place = place_for("probe", server.origin.partition("://")[2], created, out)
    with progress_bar() as progress:
        collected = run_probe(asked, progress)
    command = command_line(command_without_url(sys.argv, url, server))
    outcome = record_of(asked, collected, created, command)
    keep_record(outcome.record, place, as_json=json, chart=chart)
    return outcome.exit_code()
