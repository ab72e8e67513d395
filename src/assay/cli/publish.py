"""`assay publish`: a metric into Foundry's evaluator catalog."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from assay import sync
from assay.errors import SetupError


class Form(StrEnum):
    """What a file becomes there."""

    prompt = "prompt"
    score_model = "score_model"
    endpoint = "endpoint"


def publish(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .prompty file, or a name.")],
    as_: Annotated[Form, typer.Option("--as", help="What it becomes.")] = Form.prompt,
    output: Annotated[
        str | None, typer.Option(help="The scored output, where there are several.")
    ] = None,
    deployment: Annotated[
        str | None, typer.Option(help="The judge of a score_model grader.")
    ] = None,
    connection: Annotated[
        str | None, typer.Option(help="Of an endpoint: the project's connection to assay serve.")
    ] = None,
    azure_ai_project: Annotated[str | None, typer.Option(help="See assay upload.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent; make no call.")
    ] = False,
) -> None:
    """Register FILE as an evaluator, and say what of it is lost.

    A score_model grader enters no catalog: it is printed, to be put into an eval's criteria.
    """
    from assay.azure import find_project
    from assay.azure import publish as publishing
    from assay.azure.project import Foundry
    from assay.cli.output import print_json
    from assay.metric.registry import find
    from assay.prompty import load

    made = publishing.publication(
        load(find(str(file))),
        as_.value,
        output=output,
        deployment=deployment,
        connection=connection,
    )
    for lost in made.lost:
        print(f"lost: {lost}", file=sys.stderr)
    if dry_run or as_ is Form.score_model:
        print_json(made.body if as_ is Form.score_model else made.as_dict())
        return
    project = find_project(azure_ai_project)
    if not isinstance(project, Foundry):
        raise SetupError("the evaluator catalog is in Foundry projects alone: give an endpoint")
    print(f"{made.name} {sync.run(publishing.register(project, made))}")
