"""``detokbench audit``: what can be known about a tokenizer without a model."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from detokbench.commands.options import TrustOption, only_utf8
from detokbench.errors import ExitCode

HELP = """\
Show what a tokenizer does to text when it is served, without a model.

Which path vLLM and SGLang pick for it, which ids are no text alone, what becomes of spaces, special
tokens, BOS in chats and stop strings, and what each finding means. Nothing is stored.
"""


def audit(
    tokenizer: Annotated[
        str,
        typer.Argument(
            metavar="TOKENIZER",
            help="A name ('detokbench vocab list'), a tokenizer.json, a folder, or a hub id.",
        ),
    ],
    stop: Annotated[
        list[str] | None,
        typer.Option(
            "--stop",
            metavar="TEXT",
            callback=only_utf8,
            help="A stop string to look at; may be given several times, and is never split.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write the facts to standard output, no screen.")
    ] = False,
    trust_remote_code: TrustOption = False,
) -> int:
    # Heavy modules are imported here: --help must not wait for them.
    from detokbench.bench.stop_sets import check_stops
    from detokbench.vocab.registry import check_vocabulary_name, load_vocabulary

    stops = list(dict.fromkeys(stop or []))
    check_stops(stops, [])
    check_vocabulary_name(tokenizer)
    from detokbench.report.audit_screen import print_audit
    from detokbench.report.console import make_console
    from detokbench.vocab.audit import audit as look_at

    vocabulary = load_vocabulary(tokenizer, trust_remote_code)
    facts = look_at(vocabulary, tokenizer, stops, trust_remote_code)
    if json:
        import msgspec

        written = msgspec.json.format(msgspec.json.encode(facts), indent=2)
        sys.stdout.write(f"{written.decode()}\n")
        sys.stdout.flush()
    else:
        print_audit(facts, make_console())
    return ExitCode.OK
