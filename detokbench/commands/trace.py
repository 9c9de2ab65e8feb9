"""``detokbench trace``: one stream through one path, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from detokbench.commands.options import TrustOption
from detokbench.errors import usage_error
from detokbench.grammar import parse_count, parse_id_list
from detokbench.vocab.registry import DEFAULT_VOCABULARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detokbench.paths.protocol import PathClass
    from detokbench.verify.stream import Stream
    from detokbench.vocab.vocabulary import Vocabulary

HELP = """\
Show one stream through one path, step by step: what comes in, is held, goes out and is lost.

Ids may be any whole number, out of range too: what a path makes of them is part of the trace. Ends
with exit code 0 whatever the path did; 'detokbench verify' judges.
"""


def trace(
    path: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="See 'detokbench paths list'; --tokens needs none."),
    ] = None,
    vocab: Annotated[
        str,
        typer.Option(
            "--vocab", metavar="NAME|PATH|HUB-ID", help="Vocabulary; see 'detokbench vocab list'."
        ),
    ] = DEFAULT_VOCABULARY,
    case: Annotated[
        str | None,
        typer.Option(
            "--case", metavar="NAME", help="The stream of a shipped case, such as B2, as it is."
        ),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(
            "--row", metavar="N", help="Which row of the case, where it has several.  [default: 1]"
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="Text before the output.")
    ] = None,
    prompt_ids: Annotated[
        str | None,
        typer.Option(
            "--prompt-ids", metavar="LIST", help="The prompt as ids: 9906,1917,128010*20."
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="TEXT", help="Text to stream.")
    ] = None,
    output_ids: Annotated[
        str | None,
        typer.Option("--output-ids", metavar="LIST", help="The output as ids: 9906,-1,2**63."),
    ] = None,
    ids_per_step: Annotated[
        str | None,
        typer.Option(
            "--ids-per-step",
            metavar="N",
            help="Ids that come in one step.  [default: 1, or what shows a case's fault]",
        ),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option("--stop", metavar="TEXT", help="A stop string; may be given several times."),
    ] = None,
    stop_id: Annotated[
        list[str] | None,
        typer.Option("--stop-id", metavar="ID", help="A stop id; may be given several times."),
    ] = None,
    min_tokens: Annotated[
        str | None,
        typer.Option("--min-tokens", metavar="N", help="Ids before which no stop counts."),
    ] = None,
    keep_stop: Annotated[
        bool, typer.Option("--keep-stop", help="Leave what matched in the text.")
    ] = False,
    keep_special: Annotated[
        bool, typer.Option("--keep-special", help="Do not skip special tokens.")
    ] = False,
    no_spaces_between: Annotated[
        bool,
        typer.Option("--no-spaces-between", help="No spaces between special tokens."),
    ] = False,
    no_end: Annotated[
        bool, typer.Option("--no-end", help="The stream goes on after the output.")
    ] = False,
    tokens: Annotated[
        bool,
        typer.Option("--tokens", help="Instead of steps: each id's bytes and its text in context."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON, no table.")] = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.paths.protocol import Flags
    from detokbench.paths.registry import load_path_class
    from detokbench.stops.request import StopRequest
    from detokbench.stops.validation import refuse_empty_stop
    from detokbench.trace.given import Given, given_case, refuse_broken, refuse_together
    from detokbench.verify.stream import Stream
    from detokbench.vocab.registry import load_vocabulary

    stops = StopRequest(
        strings=tuple(dict.fromkeys(stop or [])),
        stop_ids=frozenset(i for part in stop_id or [] for i in parse_id_list(part, "--stop-id")),
        min_tokens=0 if min_tokens is None else parse_count(min_tokens, "--min-tokens", least=0),
        keep_stop=keep_stop,
    )
    for string in stops.strings:
        refuse_empty_stop(string, "--stop")
        refuse_broken(string, "--stop", "a text that is")
    if not (stops.strings or stops.stop_ids) and (keep_stop or min_tokens is not None):
        raise usage_error("--keep-stop and --min-tokens need a --stop or a --stop-id")
    size = None if ids_per_step is None else parse_count(ids_per_step, "--ids-per-step")
    case_row = None if row is None else parse_count(row, "--row")
    if case is None and case_row is not None:
        raise usage_error("--row needs a --case")
    before = Given(prompt, prompt_ids, "prompt")
    after = Given(output, output_ids, "output")
    if case is None and after.is_missing:
        raise usage_error("nothing to stream; give --output, --output-ids or --case")
    path_class = None if path is None else load_path_class(path)
    if tokens:
        refuse_together(
            "--tokens",
            {
                "--case": case is not None,
                "--ids-per-step": size is not None,
                "--stop": bool(stops.strings),
                "--stop-id": bool(stops.stop_ids),
                "--keep-special": keep_special,
                "--no-spaces-between": no_spaces_between,
                "--no-end": no_end,
            },
        )
    elif path_class is None:
        raise usage_error("which path? name one; 'detokbench paths list' has them")
    if case is not None and path_class is not None:
        refuse_together(
            "--case",
            {
                "--vocab": vocab != DEFAULT_VOCABULARY,
                "a prompt": not before.is_missing,
                "an output": not after.is_missing,
                "--stop": bool(stops.strings or stops.stop_ids),
                "--keep-special": keep_special,
                "--no-spaces-between": no_spaces_between,
                "--no-end": no_end,
            },
        )
        of_case = given_case(case, case_row or 1)
        heading = of_case.says_of(path_class.name)
        steps = size or of_case.ids_per_step(path_class)
        _print_trace(path_class, of_case.vocabulary, of_case.stream, steps, json, heading)
        return 0
    vocabulary = load_vocabulary(vocab, trust_remote_code)
    if path_class is None or tokens:
        context = None if before.is_missing else before.ids(vocabulary)
        _print_tokens(vocabulary, context, after.ids(vocabulary), json)
        return 0
    stream = Stream(
        tuple(before.ids(vocabulary)),
        tuple(after.ids(vocabulary)),
        Flags(not keep_special, not no_spaces_between),
        stops,
        not no_end,
    )
    _print_trace(path_class, vocabulary, stream, size or 1, json)
    return 0


def _print_trace(
    path_class: PathClass,
    vocabulary: Vocabulary,
    stream: Stream,
    ids_per_step: int,
    json: bool,
    heading: Sequence[str] = (),
) -> None:
    from detokbench.report.console import make_console
    from detokbench.report.trace_screen import print_trace
    from detokbench.trace.export import trace_json
    from detokbench.trace.run import trace_stream

    traced = trace_stream(path_class, vocabulary, stream, ids_per_step)
    if json:
        typer.echo(trace_json(traced))
    else:
        console = make_console()
        for line in heading:
            console.print(line, markup=False, highlight=False)
        print_trace(traced, console, path_class.stops)


def _print_tokens(
    vocabulary: Vocabulary, context: list[int] | None, ids: list[int], json: bool
) -> None:
    from detokbench.report.console import make_console
    from detokbench.report.token_screen import print_tokens
    from detokbench.trace.export import tokens_json
    from detokbench.trace.tokens import list_tokens

    listed = list_tokens(vocabulary, context, ids)
    if json:
        typer.echo(tokens_json(listed))
    else:
        print_tokens(listed, make_console())
