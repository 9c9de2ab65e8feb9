"""The command line: which commands there are, and what becomes of errors. Imports nothing heavy."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from detokbench import __version__
from detokbench.commands import (
    audit,
    encode,
    fidelity,
    frontend,
    gpus,
    measure_c,
    models,
    paths,
    pipeline,
    plot,
    probe,
    report,
    scenarios,
    show,
    sweep,
    tail_str,
    time_step,
    trace,
    verify,
    vocab,
)
from detokbench.errors import DetokbenchError, ExitCode, cannot_show

app = typer.Typer(
    name="detokbench",
    help="What it costs the host to turn token ids into text while a model generates.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help is a third of the start-up time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("measure-c", help=measure_c.HELP)(measure_c.measure_c)
app.command("sweep", help=sweep.HELP)(sweep.sweep)
app.command("tail-str", help=tail_str.HELP)(tail_str.tail_str)
app.command("time-step", help=time_step.HELP)(time_step.time_step)
app.command("encode", help=encode.HELP)(encode.encode)
app.command("pipeline", help=pipeline.HELP)(pipeline.pipeline)
app.command("frontend", help=frontend.HELP)(frontend.frontend)
app.command("audit", help=audit.HELP)(audit.audit)
app.command("verify", help=verify.HELP)(verify.verify)
app.command("fidelity", help=fidelity.HELP)(fidelity.fidelity)
app.command("trace", help=trace.HELP)(trace.trace)
app.command("probe", help=probe.HELP)(probe.probe)
app.command("show", help=show.HELP)(show.show)
app.command("plot", help=plot.HELP)(plot.plot)
app.command("report", help=report.HELP)(report.report)
app.add_typer(vocab.app, name="vocab")
app.add_typer(paths.app, name="paths")
app.add_typer(scenarios.app, name="scenario")
app.add_typer(models.app, name="model")
app.add_typer(gpus.app, name="gpu")
_OUTPUT_LOST = (errno.ENOSPC, errno.EIO, errno.EDQUOT)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"detokbench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere on the line.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit code. Every error ends here, as one line."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    try:
        result = app(
            [argument for argument in given if argument != "--debug"],
            prog_name="detokbench",
            standalone_mode=False,
        )
        sys.stdout.flush()  # here, where a full disk can still be said
    except DetokbenchError as error:
        return _report(error, str(error), error.exit_code, debug)
    except (BrokenPipeError, SystemExit):
        return _broken_pipe()  # the parser turns a broken pipe into SystemExit
    except Exception as error:
        return _report_other(error, debug)
    if result == ExitCode.INTERRUPTED:  # the parser turns Ctrl-C into this code
        return _report(None, "interrupted", ExitCode.INTERRUPTED, debug)
    return result if isinstance(result, int) else ExitCode.OK


def _report_other(error: Exception, debug: bool) -> int:
    """Usage errors of the option parser have their own exit code and message; the rest are bugs."""
    code = getattr(error, "exit_code", None)
    format_message = getattr(error, "format_message", None)
    if isinstance(code, int) and callable(format_message):
        message = str(format_message())
        if message.startswith("Usage:"):  # no command given: this is the help
            print(message)
            return code
        return _report(error, message, code, debug)
    if isinstance(code, int):  # typer.Exit and typer.Abort
        return code
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        line = f"the name '{Path(error.filename).name[:40]}…' is too long for a file"
        return _report(error, line, ExitCode.USAGE, debug)
    if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_LOST:
        return _report(error, str(cannot_show(error)), ExitCode.BROKEN_SETUP, debug)
    line = f"unexpected {type(error).__name__}: {error} (--debug shows where)"
    return _report(error, line, ExitCode.BROKEN_SETUP, debug)


def _report(error: BaseException | None, line: str, code: int, debug: bool) -> int:
    if debug and error is not None:
        traceback.print_exception(error, file=sys.stderr)
    print(f"detokbench: {line}", file=sys.stderr)
    return int(code)


def _broken_pipe() -> int:
    """The reader of our output has gone (``| head``): nothing is wrong, nobody is listening."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.OK
