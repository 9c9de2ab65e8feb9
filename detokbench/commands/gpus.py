"""``detokbench gpu``: which GPUs have a data sheet here."""

import typer

app = typer.Typer(help="GPUs by name, with their data sheets.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_gpus() -> None:
    """List the GPUs of the table: memory, bandwidth, dense rates, and where they are from."""
    from detokbench.report.lists import print_table
    from detokbench.report.units import tera
    from detokbench.tstep.gpus import DEFAULT_GPU, known_gpus

    rows = [
        (
            gpu.name,
            f"{gpu.memory_gb:g}",
            tera(gpu.bandwidth_bytes_s),
            tera(gpu.bf16_flop_s),
            "–" if gpu.fp8_flop_s is None else tera(gpu.fp8_flop_s),
            gpu.source,
        )
        for gpu in known_gpus()
    ]
    headers = ["name", "GB", "TB/s", "bf16 TFLOP/s", "fp8 TFLOP/s", "source"]
    print_table(headers, rows, right_aligned=set(headers[1:5]))
    typer.echo(f"Default: the device here, or {DEFAULT_GPU}. Rates are dense, without sparsity.")
