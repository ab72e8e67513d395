"""`assay export`: a run's rows for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    format_: Annotated[
        str, typer.Option("--format", "-f", help="csv, xlsx, parquet, jsonl, junit or markdown.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file; default stdout, and RUN/rows.* for xlsx and parquet."
        ),
    ] = None,
) -> None:
    """Write the rows of RUN; as markdown, its summary. Formulas in csv and xlsx are disarmed."""
    from assay import report
    from assay.run.record import Run

    found = Run(run)
    if out is None and format_ in ("xlsx", "parquet"):
        out = found.directory / f"rows.{format_}"
    if out is None:
        sys.stdout.flush()
        report.export(found, format_, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    report.export(found, format_, out)
    typer.echo(out)
