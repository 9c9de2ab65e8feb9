"""``detokbench vocab``: which vocabularies there are, and model folders made from them."""

from pathlib import Path
from typing import Annotated

import typer

from detokbench.commands.options import TrustOption
from detokbench.vocab.registry import DEFAULT_VOCABULARY, known_vocabularies

app = typer.Typer(help="Vocabularies by name.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_vocabularies() -> None:
    """List the vocabularies that need no network, and what else may stand for one."""
    from detokbench.report.lists import print_table

    rows = [(v.name, f"{v.ids:,}", v.tokenizer, v.family, v.package) for v in known_vocabularies()]
    print_table(["name", "ids", "tokenizer", "family", "package"], rows, right_aligned={"ids"})
    typer.echo(
        f"Default: {DEFAULT_VOCABULARY}. Also: a path to a tokenizer.json or a model folder, "
        "or a hub id (owner/model)."
    )


@app.command("export")
def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A vocabulary, as --vocab takes it.")],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder to make.")],
    tiny_config: Annotated[
        bool,
        typer.Option("--tiny-config", help="Also the configuration of a very small Llama."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the tokenizer of a folder that is not empty.")
    ] = False,
    trust_remote_code: TrustOption = False,
) -> None:
    """Make a model folder without weights: tokenizer, chat template, with a configuration or not.

    With --tiny-config it is enough for 'detokbench frontend --model DIR', for the front ends of
    'vllm serve DIR' and 'sglang.launch_server --model-path DIR', and for AutoTokenizer and
    AutoConfig of transformers.
    """
    from detokbench.vocab.chat_templates import chat_template
    from detokbench.vocab.export import check_export_place, export_vocabulary
    from detokbench.vocab.registry import check_vocabulary_name, load_vocabulary

    check_vocabulary_name(name)
    place = Path(folder)
    check_export_place(place, force)
    vocabulary = load_vocabulary(name, trust_remote_code)
    written = export_vocabulary(vocabulary, place, chat_template(name), tiny_config)
    typer.echo(f"{folder}: {', '.join(written)} ({vocabulary.size:,} ids)")
    if "chat_template.jinja" not in written:
        typer.echo("No chat template: chat completions will not work with it.", err=True)
