"""The `assay` command. One file a command, each a thin call.

Data goes to stdout, talk to stderr. Exit 0 done, 1 a gate failed, 2 usage or set-up,
3 finished with more errors than allowed.
"""

from __future__ import annotations

import os
import sys

import typer

from assay.cli.azure import azure
from assay.cli.cache import cache
from assay.cli.check import check
from assay.cli.compare import compare
from assay.cli.convert import convert
from assay.cli.export import export
from assay.cli.import_ import import_
from assay.cli.list import list_
from assay.cli.publish import publish
from assay.cli.pull import pull
from assay.cli.report import report
from assay.cli.rescore import rescore
from assay.cli.run import run
from assay.cli.serve import serve
from assay.cli.try_ import try_
from assay.cli.upload import upload
from assay.cli.view import view
from assay.errors import AssayError

app = typer.Typer(
    name="assay",
    help="LLM evaluation metrics as .prompty files, with numbers that are right or absent.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run)
app.command("try")(try_)
app.command("rescore")(rescore)
app.command("report")(report)
app.command("compare")(compare)
app.command("view")(view)
app.command("export")(export)
app.command("import")(import_)
app.command("check")(check)
app.command("convert")(convert)
app.command("list")(list_)
app.command("cache")(cache)
app.command("upload")(upload)
app.command("publish")(publish)
app.command("pull")(pull)
app.command("serve")(serve)
app.add_typer(azure, name="azure")


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from assay import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; what a person can act on is one line, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app()
    except AssayError as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("assay: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
