"""``detokbench scenario``: which scenarios and texts there are."""

import typer

app = typer.Typer(help="What can be run, as TOML files.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_scenarios() -> None:
    """List the scenarios that come with the package, and the texts they may name."""
    from detokbench.report.lists import print_table
    from detokbench.workload.scenario import load_scenario, scenario_names
    from detokbench.workload.texts import text_names

    scenarios = [load_scenario(name)[0] for name in scenario_names()]
    print_table(
        ["name", "vocabulary", "title"], [(s.name, s.vocabulary, s.title) for s in scenarios]
    )
    typer.echo(f"Texts: {', '.join(text_names())}.")
