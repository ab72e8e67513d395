"""`assay rescore`: read a run's replies again, without any call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.errors import SetupError


def rescore(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", help="EVALUATOR=FILE: read its replies with another file."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the new run.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")] = False,
) -> None:
    """Read the raw replies of RUN with the files as they are now: scales, thresholds, readers."""
    from assay.cli.output import print_json
    from assay.cli.table import print_summary
    from assay.run import rescore as rescoring

    given = {}
    for item in with_ or []:
        evaluator, equals, file = item.partition("=")
        if not equals:
            raise SetupError(f"--with {item!r} must be EVALUATOR=FILE")
        given[evaluator] = file
    finished = rescoring.rescore(run, given, name=name)
    if json_:
        print_json(finished.summary)
    print_summary(finished, sys.stderr if json_ else sys.stdout)
