"""`assay export`: a run's rows, or a metric, for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.errors import SetupError


def export(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory; with --flex a metric.")
    ],
    format_: Annotated[
        str | None,
        typer.Option("--format", "-f", help="csv, xlsx, parquet, jsonl, junit or markdown."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file; default stdout, and RUN/rows.* for xlsx and parquet."
        ),
    ] = None,
    flex: Annotated[
        bool,
        typer.Option("--flex", help="Write the metric as the flow folder of classic projects."),
    ] = False,
) -> None:
    """Write the rows of RUN; as markdown, its summary. Formulas in csv and xlsx are disarmed.

    With --flex, write a metric (a name, a .prompty file, a metric folder) as the folder --out,
    which classic Azure projects and promptflow load.
    """
    if flex:
        _write_flow(run, format_, out)
        return
    from assay import report
    from assay.run.record import Run

    if format_ is None:
        raise SetupError("give --format csv, xlsx, parquet, jsonl, junit or markdown")
    found = Run(run)
    if out is None and format_ in ("xlsx", "parquet"):
        out = found.beside(f"rows.{format_}")
    if out is None:
        sys.stdout.flush()
        report.export(found, format_, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    report.export(found, format_, out)
    typer.echo(out)


def _write_flow(metric: Path, format_: str | None, folder: Path | None) -> None:
    from assay.azure.flex import flow_of

    if format_ is not None or folder is None:
        raise SetupError("--flex writes a folder: give it with --out, and no --format")
    flow = flow_of(metric)
    flow.write(folder)
    for note in flow.notes:
        print(f"note: {note}", file=sys.stderr)
    typer.echo(folder)
