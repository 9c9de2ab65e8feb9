"""``detokbench model``: which model shapes there are."""

import typer

app = typer.Typer(help="Model shapes by name.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_models() -> None:
    """List the shapes that come with the package, and what a decode step reads of them."""
    from detokbench.report.lists import print_table
    from detokbench.report.units import data_size
    from detokbench.tstep.shapes import DEFAULT_MODEL, find_shape, shape_names

    rows = [
        (
            shape.name,
            str(shape.layers),
            f"{shape.heads}/{shape.kv_heads}",
            f"{shape.total_params / 1e9:.2f} B",
            data_size(2 * shape.streamed_params),
            data_size(shape.kv_bytes_per_token()),
        )
        for shape in map(find_shape, shape_names())
    ]
    headers = ["name", "layers", "heads/KV", "parameters", "read a step", "KV a token"]
    print_table(headers, rows, right_aligned=set(headers[1:]))
    typer.echo(
        f"Default: {DEFAULT_MODEL}. Sizes in bf16. Also: a folder with the config.json of a dense "
        "Llama-like model."
    )
