"""`assay view`: all runs of a folder in the browser."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer


def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="[DIR]", help="The folder of runs, or a result file of azure-ai-evaluation."
        ),
    ] = Path("runs"),
    port: Annotated[int, typer.Option(help="Default: a free one.")] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Serve the runs in DIR on 127.0.0.1, read-only, until Ctrl-C."""
    from assay.report import Viewer
    from assay.run.record import Run
    from assay.run.results import results_file

    if results_file(folder):
        folder = Run(folder).directory
    viewer = Viewer(folder, port=port)
    typer.echo(viewer.url)
    sys.stdout.flush()
    print("only this address answers; Ctrl-C ends it", file=sys.stderr)
    if open_:
        import webbrowser

        webbrowser.open(viewer.url)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it as Ctrl-C does
    try:
        viewer.serve()
    except KeyboardInterrupt:
        print("ended", file=sys.stderr)
    finally:
        viewer.close()
