"""``detokbench paths``: which paths there are."""

import typer

from detokbench.errors import DetokbenchError

app = typer.Typer(help="The ways from ids to text.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_paths() -> None:
    """List the paths, ours and third parties', and the versions of engines that were tried."""
    from detokbench.paths.installed_engine import TRIED, installed_version
    from detokbench.paths.registry import known_path_names
    from detokbench.report.lists import print_table

    print_table(["name", "whose", "what it does"], [_row(name) for name in known_path_names()])
    engines = ((name, ", ".join(tried), installed_version(name)) for name, tried in TRIED.items())
    print_table(
        ["engine", "versions tried", "here"],
        [(name, tried, here or "–") for name, tried, here in engines],
    )


def _row(name: str) -> tuple[str, str, str]:
    from detokbench.paths.installed_engine import ENGINE_OF_PATH, named, why_absent
    from detokbench.paths.registry import load_path_class

    try:
        path = load_path_class(name)
    except DetokbenchError as error:
        return name, "", str(error)
    engine = ENGINE_OF_PATH.get(name)
    if engine is None:
        return name, path.whose, path.summary
    absent = why_absent(engine)
    if absent is not None:
        return name, path.whose, f"not available: {absent}"
    return name, path.whose, f"{path.summary} Here: {named(engine)}."
