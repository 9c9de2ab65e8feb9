"""``detokbench vocab``: which vocabularies there are."""

import typer

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
