"""`assay report`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run directory, or a result file of azure-ai-evaluation; left out, the latest "
            "of runs/.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file; default RUN/report.html, or beside the result file."
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write a run, finished or not, as one HTML file that needs nothing beside it."""
    from assay.run.directory import latest_directory
    from assay.run.record import Run

    path = Run(run or latest_directory(Path("runs"))).report(out)
    if open_:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
    typer.echo(path)
