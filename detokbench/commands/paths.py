"""``detokbench paths``: which paths there are."""

import typer

app = typer.Typer(help="The ways from ids to text.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_paths() -> None:
    """List the paths that are installed here, ours and third parties'."""
    from detokbench.paths.registry import load_path_class, path_names
    from detokbench.report.lists import print_table

    classes = [load_path_class(name) for name in path_names()]
    rows = [
        (c.name, c.whose, next(iter((c.__doc__ or "").strip().splitlines()), "")) for c in classes
    ]
    print_table(["name", "whose", "what it does"], rows)
